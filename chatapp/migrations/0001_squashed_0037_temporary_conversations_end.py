# Makes of an empty database what the migrations it replaces make, in a quarter of their time. A database that has some of
# them goes on with them.

import uuid
from decimal import Decimal
from importlib import import_module

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import chatapp.operations.database.ids
import chatapp.providers.models

keep_none = import_module("chatapp.migrations.0001_initial").keep_none


class Migration(migrations.Migration):
    replaces = [
        ("chatapp", "0001_initial"),
        ("chatapp", "0002_accounts_and_audit"),
        ("chatapp", "0003_named_windows"),
        ("chatapp", "0004_recalled_in_place"),
        ("chatapp", "0005_shared_conversation"),
        ("chatapp", "0006_forget_in_pieces"),
        ("chatapp", "0007_editions_of_the_configuration"),
        ("chatapp", "0008_responses_and_webhooks"),
        ("chatapp", "0009_sample_no_new_text"),
        ("chatapp", "0010_generated_titles"),
        ("chatapp", "0011_imported_conversation"),
        ("chatapp", "0012_idempotency_keys"),
        ("chatapp", "0013_budgets"),
        ("chatapp", "0014_imports"),
        ("chatapp", "0015_trash"),
        ("chatapp", "0016_folders"),
        ("chatapp", "0017_sample_no_text_of_folders"),
        ("chatapp", "0018_stored_settings"),
        ("chatapp", "0019_usage_hours"),
        ("chatapp", "0020_read_count"),
        ("chatapp", "0021_edited_answers"),
        ("chatapp", "0022_accounts_of_companies"),
        ("chatapp", "0023_prompts"),
        ("chatapp", "0024_ratings"),
        ("chatapp", "0025_folder_files"),
        ("chatapp", "0026_indexed_below"),
        ("chatapp", "0027_user_editions"),
        ("chatapp", "0028_settings_of_people"),
        ("chatapp", "0029_fewer_rows_read"),
        ("chatapp", "0030_parts_of_imports"),
        ("chatapp", "0031_tombstones_by_first_word"),
        ("chatapp", "0032_email_in_one_spelling"),
        ("chatapp", "0033_fewer_indexes_of_messages"),
        ("chatapp", "0034_forgetting_counts"),
        ("chatapp", "0035_conversation_kept_since"),
        ("chatapp", "0036_webhooks_end_with_tokens"),
        ("chatapp", "0037_temporary_conversations_end"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
                ("name", models.CharField(blank=True, max_length=150)),
                (
                    "time_zone",
                    models.CharField(default="UTC", help_text="Where this user's day begins.", max_length=64),
                ),
                (
                    "memory_paused",
                    models.BooleanField(default=False, help_text="Nothing is learned and nothing recalled."),
                ),
                (
                    "reviews_memory",
                    models.BooleanField(default=False, help_text="Entries wait for approval."),
                ),
                ("uses_profile", models.BooleanField(default=True)),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        help_text="The language of the page, such as zh-hans; empty: the browser's language.",
                        max_length=16,
                    ),
                ),
                ("theme", models.CharField(default="system", max_length=16)),
                ("text_size", models.CharField(default="normal", max_length=16)),
                ("text_width", models.CharField(default="normal", max_length=16)),
                ("send_key", models.CharField(default="enter", max_length=16)),
                (
                    "notifications",
                    models.BooleanField(
                        default=True, help_text="Browser notifications, if the browser allows them."
                    ),
                ),
                (
                    "instructions",
                    models.TextField(blank=True, help_text="Sent to the model in every chat of this user."),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("is_staff", models.BooleanField(default=False, verbose_name="operator")),
                ("date_joined", models.DateTimeField(auto_now_add=True)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("email"),
                        name="user_email_once",
                        violation_error_message="There is an account with this email address already.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("at", models.DateTimeField(db_index=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("signed_in", "signed in"),
                            ("sign_in_failed", "sign-in failed"),
                            ("signed_out", "signed out"),
                            ("password_changed", "password changed"),
                            ("address_changed", "email address changed"),
                            ("second_factor_changed", "second factor changed"),
                            ("token_created", "token created"),
                            ("token_revoked", "token revoked"),
                            ("session_ended", "session ended"),
                            ("exported", "account exported"),
                            ("single_sign_on_changed", "single sign-on linked or removed"),
                            ("groups_followed", "groups taken from single sign-on"),
                            ("looked", "looked into a conversation"),
                            ("invited", "invited"),
                            ("invitation_withdrawn", "invitation withdrawn"),
                            ("account_created", "account created"),
                            ("account_deleted", "account deleted"),
                            ("changed_in_admin", "changed in the admin"),
                        ],
                        max_length=30,
                    ),
                ),
                ("user_id", models.UUIDField(db_index=True, null=True, verbose_name="account")),
                ("actor_id", models.UUIDField(null=True, verbose_name="by")),
                ("address", models.CharField(blank=True, max_length=45, verbose_name="from")),
                ("detail", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ["-at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Branch",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("lineage", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=200)),
                (
                    "title_made_of",
                    models.PositiveBigIntegerField(
                        editable=False,
                        help_text="The last position that its generated title was made of.",
                        null=True,
                    ),
                ),
                (
                    "shared_in",
                    models.UUIDField(
                        db_index=True,
                        editable=False,
                        help_text="The id of that agent, also when it is deleted: forgetting follows it.",
                        null=True,
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("react", "one loop of thinking and tools"),
                            ("plan", "a plan of steps, carried out in parallel"),
                            ("auto", "a plan for questions of several parts, else one loop"),
                        ],
                        help_text="Empty: the agent's.",
                        max_length=10,
                    ),
                ),
                (
                    "hook_state",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="When each hook fired last, and what they left for the next turn.",
                    ),
                ),
                ("context_policy", models.JSONField(blank=True, default=dict)),
                ("named_windows", models.JSONField(blank=True, default=dict, editable=False)),
                (
                    "hooks",
                    models.JSONField(
                        blank=True, default=list, help_text="Its own, after the deployment's and the agent's."
                    ),
                ),
                (
                    "summary_waits",
                    models.BooleanField(
                        default=False,
                        help_text="Something left its context that waits for more, to be summarised with it.",
                    ),
                ),
                ("next_position", models.PositiveBigIntegerField(default=0)),
                ("last_seq", models.PositiveBigIntegerField(default=0)),
                (
                    "read_count",
                    models.PositiveBigIntegerField(
                        default=0,
                        editable=False,
                        help_text="How many messages it had when a page in view showed it last.",
                    ),
                ),
                (
                    "indexed_below",
                    models.PositiveBigIntegerField(
                        default=0,
                        editable=False,
                        help_text="Messages below this position are in the search index.",
                    ),
                ),
                (
                    "last_ordinal",
                    models.IntegerField(
                        default=-1,
                        editable=False,
                        help_text="Of its newest document in the search index; -1: none.",
                    ),
                ),
                ("last_activity_at", models.DateTimeField()),
                (
                    "kept_since",
                    models.DateTimeField(
                        editable=False,
                        help_text="When it was imported: the clean-up counts no earlier day.",
                        null=True,
                    ),
                ),
                ("pinned", models.BooleanField(default=False)),
                ("archived", models.BooleanField(default=False)),
                ("temporary", models.BooleanField(default=False)),
                (
                    "memory",
                    models.CharField(
                        choices=[("on", "On"), ("paused", "Paused")], default="on", max_length=6
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("indexed_below__lt", models.F("next_position")), ("temporary", False)
                        ),
                        fields=["last_activity_at"],
                        name="conversation_overlooked",
                    ),
                    models.Index(
                        condition=models.Q(("pinned", False)),
                        fields=["last_activity_at"],
                        name="conversation_idle",
                    ),
                    models.Index(
                        condition=models.Q(("pinned", False), ("temporary", True)),
                        fields=["last_activity_at"],
                        name="conversation_temporary",
                    ),
                    models.Index(
                        condition=models.Q(("summary_waits", True)),
                        fields=["last_activity_at"],
                        name="conversation_summary_waits",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeploymentHook",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("hook_id", models.CharField(max_length=100, unique=True)),
                ("declaration", models.JSONField(help_text="One hook, as in the YAML of agents.")),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "hook",
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Edition",
            fields=[
                ("name", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("token", models.CharField(max_length=32)),
            ],
        ),
        migrations.CreateModel(
            name="ForgettingCount",
            fields=[
                (
                    "key",
                    models.UUIDField(
                        help_text="The id of a user, or of the agent that shares a memory.",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("count", models.PositiveIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="McpServer",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="Begins the names of its tools: name__tool.",
                        max_length=30,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9]+(?:[-_][a-z0-9]+)*\\Z",
                                "Use small letters and digits, with single - or _ between.",
                            )
                        ],
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        help_text="Of its streamable HTTP endpoint, such as https://tools.example.com/mcp.",
                        max_length=500,
                        validators=[chatapp.providers.models.endpoint_address],
                        verbose_name="address",
                    ),
                ),
                ("headers_encrypted", models.TextField(blank=True, editable=False)),
                (
                    "is_own",
                    models.BooleanField(
                        default=False,
                        help_text="Allows a private or loopback address. Otherwise only public addresses are called.",
                        verbose_name="on our own network",
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "for_everyone",
                    models.BooleanField(
                        default=False,
                        help_text="Also where a conversation has no agent, and for the agents that users make.",
                    ),
                ),
                (
                    "tool_filter",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="The server's own names. Empty: all.",
                        verbose_name="only these tools",
                    ),
                ),
                (
                    "needs_consent",
                    models.BooleanField(default=True, help_text="The user is asked to approve each call."),
                ),
                (
                    "timeout_s",
                    models.FloatField(
                        default=30.0,
                        help_text="Seconds one call may take.",
                        validators=[
                            django.core.validators.MinValueValidator(1.0),
                            django.core.validators.MaxValueValidator(600.0),
                        ],
                        verbose_name="time limit",
                    ),
                ),
                ("tools", models.JSONField(default=list, editable=False)),
                ("approved_tools", models.JSONField(default=list, editable=False)),
                ("listed_at", models.DateTimeField(editable=False, null=True)),
                ("asked_at", models.DateTimeField(editable=False, null=True)),
                ("problem", models.TextField(blank=True, editable=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name": "MCP server",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="StoredSetting",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("value_encrypted", models.TextField()),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="UsageHour",
            fields=[
                ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                ("input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("cost", models.DecimalField(decimal_places=8, max_digits=20, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="UserEdition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("user_id", models.UUIDField(db_index=True)),
                ("token", models.CharField(max_length=32)),
            ],
        ),
        migrations.CreateModel(
            name="Profile",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="profile",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("text", models.TextField(blank=True)),
                (
                    "sources",
                    models.JSONField(
                        default=list,
                        help_text="For each line, the ids of the entries it was made of; a user's own has none.",
                    ),
                ),
                ("version", models.PositiveIntegerField(default=0)),
                ("written_version", models.PositiveIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("version", models.F("written_version")), _negated=True),
                        fields=["version"],
                        name="profile_unwritten",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Agent",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(help_text="What users choose.", max_length=100)),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("react", "one loop of thinking and tools"),
                            ("plan", "a plan of steps, carried out in parallel"),
                            ("auto", "a plan for questions of several parts, else one loop"),
                        ],
                        default="react",
                        max_length=10,
                    ),
                ),
                (
                    "system_prompt",
                    models.TextField(blank=True, help_text="Empty: the model's, or the built-in one."),
                ),
                ("greeting", models.TextField(blank=True, help_text="Shown above an empty conversation.")),
                (
                    "temperature",
                    models.FloatField(
                        blank=True, null=True, validators=[django.core.validators.MinValueValidator(0.0)]
                    ),
                ),
                (
                    "timeout_s",
                    models.FloatField(
                        default=0.0,
                        help_text="Seconds one answer may take; 0 = no limit of its own.",
                        validators=[django.core.validators.MinValueValidator(0.0)],
                        verbose_name="time limit",
                    ),
                ),
                (
                    "tools",
                    models.JSONField(
                        blank=True,
                        help_text="Names of what its answers may use. None: the deployment's choice.",
                        null=True,
                    ),
                ),
                (
                    "uses_memory",
                    models.BooleanField(
                        default=True,
                        help_text="Whether its answers recall what was said elsewhere, and are remembered.",
                    ),
                ),
                (
                    "shares_memory",
                    models.BooleanField(
                        default=False,
                        help_text="Whether memories of its conversations are shared with all its users. Such conversations know nothing private about their users. Only for agents that everybody may use.",
                    ),
                ),
                ("context_policy", models.JSONField(blank=True, default=dict)),
                ("hooks", models.JSONField(blank=True, default=list)),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="The user who created it for personal use. Empty: for everybody.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agents",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "mcp_servers",
                    models.ManyToManyField(
                        blank=True, related_name="agents", to="chatapp.mcpserver", verbose_name="MCP servers"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None)), fields=("name",), name="agent_name_once_for_all"
                    ),
                    models.UniqueConstraint(fields=("owner", "name"), name="agent_name_once_per_owner"),
                    models.CheckConstraint(
                        condition=models.Q(("shares_memory", False), ("owner", None), _connector="OR"),
                        name="agent_shares_for_all",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("prefix", models.CharField(max_length=16)),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("scopes", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("deployment", "everybody together"),
                            ("group", "a group together"),
                            ("every_user", "each user"),
                            ("user", "one user"),
                        ],
                        max_length=10,
                        verbose_name="for",
                    ),
                ),
                (
                    "period",
                    models.CharField(
                        choices=[("day", "a day"), ("month", "a month")],
                        help_text="Days and months begin at midnight UTC.",
                        max_length=5,
                        verbose_name="per",
                    ),
                ),
                (
                    "tokens",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Input and output. Empty: any number.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000000000000),
                        ],
                    ),
                ),
                (
                    "money",
                    models.DecimalField(
                        blank=True,
                        decimal_places=4,
                        help_text="US dollars, as far as prices are known. Empty: any amount.",
                        max_digits=12,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        help_text="Takes the place of the budget of each user for the same period.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["scope", "period", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("scope__in", ["deployment", "every_user"])),
                        fields=("scope", "period"),
                        name="budget_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("scope", "group")),
                        fields=("group", "period"),
                        name="budget_once_per_group",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("scope", "user")),
                        fields=("user", "period"),
                        name="budget_once_per_user",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("group__isnull", False), ("scope", "group"), ("user", None)),
                            models.Q(("group", None), ("scope", "user"), ("user__isnull", False)),
                            models.Q(
                                ("group", None), ("scope__in", ["deployment", "every_user"]), ("user", None)
                            ),
                            _connector="OR",
                        ),
                        name="budget_of_its_scope",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("tokens__gte", 0),
                            models.Q(("money__isnull", False), ("tokens", None)),
                            _connector="OR",
                        ),
                        name="budget_has_a_limit",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BudgetPeriod",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("starts_on", models.DateField()),
                ("used_tokens", models.BigIntegerField(default=0)),
                ("used_nanos", models.BigIntegerField(default=0)),
                ("held_tokens", models.BigIntegerField(default=0)),
                ("held_nanos", models.BigIntegerField(default=0)),
                ("warned_at", models.DateTimeField(null=True)),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="periods",
                        to="chatapp.budget",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BudgetHold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("call_id", models.UUIDField()),
                ("tokens", models.BigIntegerField()),
                ("nanos", models.BigIntegerField()),
                ("expires_at", models.DateTimeField()),
                (
                    "period",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="holds",
                        to="chatapp.budgetperiod",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="budget_hold_expires")],
                "constraints": [
                    models.UniqueConstraint(fields=("call_id", "period"), name="budget_hold_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ConversationMetadata",
            fields=[
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="chatapp.conversation",
                    ),
                ),
                ("metadata", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="TitleJob",
            fields=[
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "lease_expires_at",
                    models.DateTimeField(
                        help_text="From then on a worker may take it. Null: it is over.", null=True
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("lease_expires_at__isnull", False)),
                        fields=["lease_expires_at"],
                        name="title_job_waiting",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TrashedConversation",
            fields=[
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="trashed",
                        serialize=False,
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("by_hand", "deleted by its user: what was remembered of it goes with it"),
                            ("idle", "cleaned up: what was remembered of it stays"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "entries",
                    models.JSONField(default=list, help_text="Ids of the memory entries that named it."),
                ),
                ("trashed_at", models.DateTimeField()),
                ("purge_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.AddField(
            model_name="conversation",
            name="agent",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="conversations",
                to="chatapp.agent",
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="branch",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="chatapp.branch"
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="scope",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                help_text="The agent whose shared memory it was started in: it never uses the user's own memory.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chatapp.agent",
            ),
        ),
        migrations.AddField(
            model_name="conversation",
            name="user",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="conversations",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.CreateModel(
            name="Compaction",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("first_position", models.PositiveBigIntegerField()),
                ("last_position", models.PositiveBigIntegerField()),
                ("message_count", models.PositiveIntegerField()),
                ("kept_count", models.PositiveIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("undone", "Undone"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("strategy", models.CharField(max_length=12)),
                ("keep_hint", models.TextField(blank=True, help_text="What the user asked to keep.")),
                ("summary", models.TextField(blank=True)),
                ("summary_tokens", models.PositiveIntegerField(default=0)),
                (
                    "summary_max_tokens",
                    models.PositiveIntegerField(default=0, help_text="A hook's own limit; 0 = the policy's."),
                ),
                (
                    "is_partial",
                    models.BooleanField(
                        default=False, help_text="More of the same backlog is left after it."
                    ),
                ),
                (
                    "reminder",
                    models.TextField(blank=True, help_text="Text that follows the summary in the context."),
                ),
                (
                    "fallback_reason",
                    models.TextField(blank=True, help_text="Why the extractive summary took over."),
                ),
                ("error", models.TextField(blank=True)),
                (
                    "budget_tokens",
                    models.PositiveIntegerField(default=0, help_text="The input budget it was made for."),
                ),
                ("span_tokens", models.PositiveIntegerField(default=0)),
                (
                    "covered_tokens",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Its span's and those of the summaries it builds on; 0 where the user cleared.",
                    ),
                ),
                ("tokens_before", models.PositiveIntegerField(default=0)),
                ("tokens_after", models.PositiveIntegerField(default=0)),
                ("usage", models.JSONField(default=dict)),
                ("holder", models.CharField(blank=True, max_length=100)),
                ("fence", models.PositiveIntegerField(default=0)),
                ("lease_expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "rewrite_since",
                    models.DateTimeField(
                        help_text="When something it covers was forgotten; it is an extract until a worker rewrites it.",
                        null=True,
                    ),
                ),
                (
                    "rewrite_after",
                    models.DateTimeField(
                        help_text="A rewrite failed and is not retried before this time.", null=True
                    ),
                ),
                (
                    "context_kept_at",
                    models.DateTimeField(
                        help_text="When the messages it covers were stored in context.jsonl.", null=True
                    ),
                ),
                (
                    "branch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="chatapp.branch"
                    ),
                ),
                (
                    "previous",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.compaction",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compactions",
                        to="chatapp.conversation",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "done")),
                        fields=["branch", "-last_position"],
                        name="compaction_latest",
                    ),
                    models.Index(
                        condition=models.Q(("status__in", ["pending", "running"])),
                        fields=["lease_expires_at"],
                        name="compaction_active",
                    ),
                    models.Index(
                        condition=models.Q(("rewrite_since__isnull", False)),
                        fields=["rewrite_since"],
                        name="compaction_to_rewrite",
                    ),
                    models.Index(
                        condition=models.Q(("context_kept_at", None), ("status", "done")),
                        fields=["finished_at"],
                        name="compaction_not_kept",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["pending", "running"])),
                        fields=("conversation",),
                        name="one_active_compaction",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "done")),
                        fields=("branch", "first_position", "last_position"),
                        name="one_summary_per_span",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("first_position__lte", models.F("last_position"))),
                        name="compaction_span_not_empty",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="branch",
            name="conversation",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="branches",
                to="chatapp.conversation",
            ),
        ),
        migrations.CreateModel(
            name="Folder",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=150)),
                ("instructions", models.TextField(blank=True)),
                ("created_at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.agent",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "name"), name="folder_name_once")],
            },
        ),
        migrations.AddField(
            model_name="conversation",
            name="folder",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="conversations",
                to="chatapp.folder",
            ),
        ),
        migrations.CreateModel(
            name="ForgetReceipt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("entry", "Entry"),
                            ("message", "Message"),
                            ("conversation", "Conversation"),
                            ("day", "Day"),
                            ("everything", "Everything"),
                            ("chosen", "Chosen"),
                        ],
                        max_length=12,
                    ),
                ),
                ("removed", models.JSONField(default=dict)),
                ("at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["user", "-at"], name="forget_receipt_by_user")],
            },
        ),
        migrations.CreateModel(
            name="ForgetProposal",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("asked_in", models.UUIDField(null=True)),
                ("items", models.JSONField(default=list)),
                ("created_at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "receipt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.forgetreceipt",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GroupRetention",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "days",
                    models.PositiveIntegerField(
                        help_text="Conversations nobody wrote to for so many days are cleaned up; 0 = never.",
                        validators=[django.core.validators.MaxValueValidator(36500)],
                    ),
                ),
                (
                    "group",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="retention", to="auth.group"
                    ),
                ),
            ],
            options={
                "verbose_name": "clean-up period",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("days__gte", 0), ("days__lte", 36500)),
                        name="groupretention_days_in_range",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key_hash", models.CharField(max_length=64)),
                ("request_hash", models.CharField(max_length=64)),
                ("made_id", models.UUIDField()),
                ("created_at", models.DateTimeField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="idempotency_keys",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key_hash"), name="idempotency_key_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Import",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("file_name", models.CharField(max_length=200)),
                ("size_bytes", models.PositiveBigIntegerField()),
                (
                    "received_bytes",
                    models.PositiveBigIntegerField(default=0, help_text="Of the file, from its beginning."),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        blank=True,
                        help_text="What its sender knows the same file by, to go on with it.",
                        max_length=64,
                    ),
                ),
                (
                    "kept_until",
                    models.DateTimeField(
                        help_text="Until when a file is kept that no worker is to read: one in parts, or one that failed.",
                        null=True,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploading", "Uploading"),
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("read_bytes", models.PositiveBigIntegerField(default=0)),
                (
                    "total_bytes",
                    models.PositiveBigIntegerField(default=0, help_text="Of what the file holds, unpacked."),
                ),
                ("report", models.JSONField(default=dict)),
                ("error", models.CharField(blank=True, max_length=300)),
                ("fence", models.PositiveIntegerField(default=0)),
                ("lease_expires_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "running"])),
                        fields=["lease_expires_at"],
                        name="import_unfinished",
                    ),
                    models.Index(
                        condition=models.Q(("kept_until__isnull", False)),
                        fields=["kept_until"],
                        name="import_kept",
                    ),
                    models.Index(fields=["user", "-created_at", "-id"], name="import_by_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportedConversation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "source_key",
                    models.CharField(help_text="A hash of the source and its own id.", max_length=64),
                ),
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imported_from",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "source_key"), name="imported_conversation_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "invited_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("email"), name="invitation_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MemoryEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("day", models.DateField()),
                (
                    "shared_in",
                    models.UUIDField(
                        help_text="The id of that agent, also when it is deleted: forgetting follows it.",
                        null=True,
                    ),
                ),
                ("first_message_id", models.UUIDField(null=True)),
                ("last_message_id", models.UUIDField(null=True)),
                ("text", models.TextField()),
                (
                    "author",
                    models.CharField(
                        choices=[("extraction", "Extraction"), ("user", "User"), ("operator", "Operator")],
                        default="extraction",
                        max_length=10,
                    ),
                ),
                (
                    "revision",
                    models.PositiveIntegerField(default=1, help_text="The number of the text as it is now."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("kept", "Kept"), ("proposed", "Proposed")], default="kept", max_length=10
                    ),
                ),
                ("written_at", models.DateTimeField(null=True)),
                ("consolidated_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "compaction",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="memory_entry",
                        to="chatapp.compaction",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="memory_entries",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "scope",
                    models.ForeignKey(
                        help_text="The agent whose shared memory it is in, too. It stays its user's own.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="shared_entries",
                        to="chatapp.agent",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memory_entries",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "day", "created_at"], name="memory_entry_by_day"),
                    models.Index(
                        condition=models.Q(("written_at", None)),
                        fields=["created_at"],
                        name="memory_entry_unwritten",
                    ),
                    models.Index(
                        condition=models.Q(("consolidated_at", None)),
                        fields=["user", "created_at"],
                        name="memory_entry_unconsolidated",
                    ),
                    models.Index(
                        condition=models.Q(("state", "proposed")),
                        fields=["user", "-created_at", "-id"],
                        name="memory_entry_proposed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EntrySource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first_message_id", models.UUIDField()),
                ("last_message_id", models.UUIDField()),
                ("created_at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sources",
                        to="chatapp.memoryentry",
                    ),
                ),
            ],
            options={
                "ordering": ("created_at", "pk"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "first_message_id", "last_message_id"), name="entry_source_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EntryRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                (
                    "author",
                    models.CharField(
                        choices=[("extraction", "Extraction"), ("user", "User"), ("operator", "Operator")],
                        max_length=10,
                    ),
                ),
                ("written_at", models.DateTimeField()),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="chatapp.memoryentry",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("entry", "number"), name="entry_revision_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SharedEntry",
            fields=[],
            options={
                "verbose_name": "entry of a shared memory",
                "verbose_name_plural": "shared memory",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("chatapp.memoryentry",),
        ),
        migrations.CreateModel(
            name="MemoryPause",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("conversation", None), ("ended_at", None)),
                        fields=("user",),
                        name="one_open_pause_of_user",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("conversation__isnull", False), ("ended_at", None)),
                        fields=("conversation",),
                        name="one_open_pause_of_conversation",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("position", models.PositiveBigIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("user", "User"),
                            ("assistant", "Assistant"),
                            ("tool", "Tool"),
                            ("system", "System"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("message", "Message"),
                            ("injected", "sent while an answer was being written"),
                            ("edited", "an answer in its user's own words"),
                        ],
                        default="message",
                        max_length=10,
                    ),
                ),
                ("parts", models.JSONField(default=list)),
                ("pinned", models.BooleanField(default=False)),
                ("token_estimate", models.PositiveIntegerField(default=0)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("streaming", "Streaming"),
                            ("complete", "Complete"),
                            ("cut", "ended at a limit"),
                            ("stopped", "Stopped"),
                            ("failed", "Failed"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="complete",
                        max_length=12,
                    ),
                ),
                ("model_name", models.CharField(blank=True, max_length=200)),
                ("usage", models.JSONField(null=True)),
                ("client_id", models.CharField(max_length=200, null=True)),
                ("request_hash", models.CharField(blank=True, max_length=64)),
                (
                    "forgotten_at",
                    models.DateTimeField(help_text="When its text, or part of it, was forgotten.", null=True),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "branch",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="chatapp.branch",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="children",
                        to="chatapp.message",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["branch", "position"], name="message_branch_position"),
                    models.Index(
                        condition=models.Q(("forgotten_at__isnull", False)),
                        fields=["conversation", "forgotten_at"],
                        name="message_forgotten",
                    ),
                    models.Index(
                        condition=models.Q(("pinned", True)),
                        fields=["branch", "position"],
                        name="message_pinned",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("conversation", "position"), name="message_position_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("client_id__isnull", False)),
                        fields=("user", "client_id"),
                        name="message_client_id_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("sha256", models.CharField(db_index=True, max_length=64)),
                ("mime_type", models.CharField(max_length=100)),
                ("width", models.PositiveIntegerField(default=0)),
                ("height", models.PositiveIntegerField(default=0)),
                ("size_bytes", models.PositiveBigIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("folders", models.ManyToManyField(related_name="files", to="chatapp.folder")),
                ("messages", models.ManyToManyField(related_name="attachments", to="chatapp.message")),
            ],
        ),
        migrations.CreateModel(
            name="AnswerPiece",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(choices=[("text", "Text"), ("reasoning", "Reasoning")], max_length=9),
                ),
                (
                    "offset",
                    models.PositiveIntegerField(help_text="In characters, from the beginning of its kind."),
                ),
                ("text", models.TextField()),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pieces",
                        to="chatapp.message",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("message", "kind", "offset"), name="answer_piece_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="AnswerFeedback",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("rating", models.CharField(choices=[("good", "Good"), ("bad", "Bad")], max_length=4)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not said"),
                            ("wrong", "not correct"),
                            ("incomplete", "something is missing"),
                            ("ignored", "did not do what was asked"),
                            ("long", "too long"),
                            ("unsafe", "harmful or inappropriate"),
                            ("other", "something else"),
                        ],
                        max_length=12,
                    ),
                ),
                ("model_name", models.CharField(blank=True, max_length=200)),
                ("given_at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.agent",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="feedback",
                        to="chatapp.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "rating of an answer",
                "verbose_name_plural": "ratings of answers",
                "constraints": [models.UniqueConstraint(fields=("message", "user"), name="feedback_once")],
            },
        ),
        migrations.CreateModel(
            name="ModelConfig",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(help_text="What users choose.", max_length=200, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("openai", "OpenAI-compatible endpoint"),
                            ("demo", "Demo (built in, no key needed)"),
                        ],
                        default="openai",
                        max_length=10,
                    ),
                ),
                (
                    "model_id",
                    models.CharField(
                        help_text="The endpoint's own name for it.", max_length=200, verbose_name="model"
                    ),
                ),
                (
                    "base_url",
                    models.CharField(
                        blank=True,
                        help_text="Up to and including /v1. Empty: api.openai.com.",
                        max_length=500,
                        validators=[chatapp.providers.models.endpoint_address],
                        verbose_name="address",
                    ),
                ),
                ("api_key_encrypted", models.TextField(blank=True, editable=False)),
                ("context_size", models.PositiveIntegerField(default=0, help_text="Tokens; 0 = detect.")),
                (
                    "max_output_tokens",
                    models.PositiveIntegerField(default=0, help_text="Tokens; 0 = detect."),
                ),
                ("detected_context_size", models.PositiveIntegerField(default=0, editable=False)),
                ("detected_max_output_tokens", models.PositiveIntegerField(default=0, editable=False)),
                ("named_window", models.JSONField(default=dict, editable=False)),
                (
                    "input_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Per million tokens. Empty: looked up.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(Decimal("0"))],
                        verbose_name="input price",
                    ),
                ),
                (
                    "output_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Per million tokens. Empty: looked up.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(Decimal("0"))],
                        verbose_name="output price",
                    ),
                ),
                (
                    "cached_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Per million tokens. Empty: looked up.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(Decimal("0"))],
                        verbose_name="cached input price",
                    ),
                ),
                ("context_policy", models.JSONField(blank=True, default=dict)),
                ("system_prompt", models.TextField(blank=True, help_text="Empty: the built-in one.")),
                (
                    "tool_calling",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("auto", "detected automatically"),
                            ("native", "the endpoint's own"),
                            ("prompted", "described in the prompt"),
                        ],
                        default="auto",
                        help_text="How the model calls tools. Prompted works with models that know nothing of them.",
                        max_length=10,
                    ),
                ),
                ("token_ratio", models.FloatField(default=1.0, editable=False)),
                ("token_ratio_samples", models.PositiveIntegerField(default=0, editable=False)),
                ("enabled", models.BooleanField(default=True)),
                ("is_default", models.BooleanField(default=False, verbose_name="default")),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("operator", "the admin panel"),
                            ("environment", "the environment (LLM_MODEL)"),
                            ("environment_fast", "the environment (FAST_LLM_MODEL)"),
                            ("ollama", "found in a local Ollama"),
                            ("built_in", "built in"),
                        ],
                        default="operator",
                        editable=False,
                        max_length=16,
                    ),
                ),
                ("test_result", models.TextField(blank=True, editable=False)),
                ("tested_at", models.DateTimeField(editable=False, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "fast_model",
                    models.ForeignKey(
                        blank=True,
                        help_text="Used for summaries and titles. Empty: itself, and no titles are written.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="chatapp.modelconfig",
                    ),
                ),
            ],
            options={
                "verbose_name": "model",
                "ordering": ["-is_default", "name"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)),
                        fields=("is_default",),
                        name="one_default_model",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("origin__in", ["environment", "environment_fast", "built_in"])),
                        fields=("origin",),
                        name="one_model_per_origin",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GroupAccess",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "agents",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The same for agents. The assistant without an agent, and users' own agents, are open to everybody.",
                        limit_choices_to={"owner": None},
                        related_name="+",
                        to="chatapp.agent",
                    ),
                ),
                (
                    "group",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="access", to="auth.group"
                    ),
                ),
                (
                    "models",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Members may use only these; if none is chosen, all. Lists of several groups are combined.",
                        related_name="+",
                        to="chatapp.modelconfig",
                    ),
                ),
            ],
            options={
                "verbose_name": "models and agents",
                "verbose_name_plural": "models and agents",
            },
        ),
        migrations.AddField(
            model_name="conversation",
            name="model",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to="chatapp.modelconfig"
            ),
        ),
        migrations.CreateModel(
            name="Consolidation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("night", models.DateField(null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("skipped", "no language model is configured"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("entry_count", models.PositiveIntegerField(default=0)),
                (
                    "version",
                    models.PositiveIntegerField(
                        help_text="The version it created; empty if nothing was new.", null=True
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("fence", models.PositiveIntegerField(default=0)),
                ("lease_expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.modelconfig",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status__in", ["pending", "running"])),
                        fields=["lease_expires_at"],
                        name="consolidation_active",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["pending", "running"])),
                        fields=("user",),
                        name="one_active_consolidation",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("night__isnull", False)),
                        fields=("user", "night"),
                        name="one_consolidation_a_night",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="compaction",
            name="model",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chatapp.modelconfig",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="model",
            field=models.ForeignKey(
                blank=True,
                help_text="Answers where the conversation names none. Empty: the default model.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="agents",
                to="chatapp.modelconfig",
            ),
        ),
        migrations.CreateModel(
            name="Offload",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("result", "a tool's result"),
                            ("image", "an image a tool gave"),
                            ("context", "messages that left the context"),
                        ],
                        max_length=10,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("tool_name", models.CharField(blank=True, max_length=100)),
                ("mime_type", models.CharField(max_length=100)),
                ("size_bytes", models.PositiveBigIntegerField()),
                ("created_at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="offloads",
                        to="chatapp.conversation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("conversation", "name"), name="offload_file_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Prompt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="What is typed behind the slash: small letters, digits, - and _.",
                        max_length=40,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9_-]*$", "Use small letters, digits, - and _."
                            )
                        ],
                    ),
                ),
                (
                    "about",
                    models.CharField(blank=True, help_text="One line, shown in the list.", max_length=150),
                ),
                ("text", models.TextField(max_length=32000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="prompt_name_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("owner", None)), fields=("name",), name="prompt_of_operators_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Removal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "conversation_id",
                    models.UUIDField(help_text="None where messages are `chosen`.", null=True, unique=True),
                ),
                (
                    "chosen",
                    models.JSONField(
                        default=dict, help_text="Ids by kind: of what is left to do in this phase."
                    ),
                ),
                ("user_id", models.UUIDField(db_index=True)),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("chosen", "messages and entries are to be forgotten"),
                            (
                                "behind",
                                "they are; what requests kept of them and their place in the index go",
                            ),
                            ("import", "rows are still being added"),
                            ("hide", "the index stops scoring it"),
                            ("traces", "what was made of it elsewhere is redacted"),
                            ("index", "its postings and documents go"),
                            ("rows", "its messages and all other rows go"),
                            ("files", "its files go"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "forgets",
                    models.BooleanField(default=False, help_text="Redact what was made of it elsewhere."),
                ),
                (
                    "keeps_rows",
                    models.BooleanField(
                        default=False, help_text="It goes to the trash: only its place in the index goes."
                    ),
                ),
                ("raises_tombstones", models.BooleanField(default=False)),
                ("for_good", models.BooleanField(default=False)),
                ("tombstone_count", models.PositiveIntegerField(default=0)),
                (
                    "entries",
                    models.JSONField(
                        default=dict, help_text="Deleted memory entries: text by id, until TRACES."
                    ),
                ),
                ("lease_expires_at", models.DateTimeField(db_index=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "receipt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.forgetreceipt",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RequestText",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha256", models.CharField(max_length=64)),
                ("source", models.CharField(max_length=12)),
                ("content", models.TextField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="request_texts",
                        to="chatapp.conversation",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("conversation", "sha256"), name="request_text_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        blank=True,
                        help_text="What the sender wanted; once claimed, how it is answered.",
                        max_length=10,
                    ),
                ),
                (
                    "plan",
                    models.JSONField(
                        help_text="The steps of a plan as they stand, with their results.", null=True
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("complete", "Complete"),
                            ("stopped", "Stopped"),
                            ("failed", "Failed"),
                            ("interrupted", "Interrupted"),
                        ],
                        default="queued",
                        max_length=12,
                    ),
                ),
                ("holder", models.CharField(blank=True, max_length=100)),
                ("fence", models.PositiveIntegerField(default=0)),
                ("lease_expires_at", models.DateTimeField(null=True)),
                (
                    "is_last_term",
                    models.BooleanField(
                        default=False,
                        help_text="The lease ran out once; its holder has one heartbeat to renew it.",
                    ),
                ),
                ("stop_requested", models.BooleanField(default=False)),
                ("error_category", models.CharField(blank=True, max_length=20)),
                ("error_message", models.TextField(blank=True)),
                ("error_detail", models.TextField(blank=True)),
                ("usage", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "answer",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="run", to="chatapp.message"
                    ),
                ),
                (
                    "continues",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.message",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.modelconfig",
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs_asked",
                        to="chatapp.message",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        fields=["status", "lease_expires_at"],
                        name="run_active",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["queued", "running"])),
                        fields=("conversation",),
                        name="one_active_run",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.PositiveBigIntegerField()),
                ("type", models.CharField(max_length=30)),
                ("payload", models.JSONField()),
                ("at", models.DateTimeField()),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="chatapp.run",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("conversation", "seq"), name="event_seq_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="RunSource",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source_id", models.UUIDField(db_index=True)),
                (
                    "place",
                    models.IntegerField(
                        default=-1, help_text="Its place in what was recalled; -1: a tool returned it."
                    ),
                ),
                (
                    "start",
                    models.PositiveIntegerField(
                        default=0, help_text="The span of its text that was recalled."
                    ),
                ),
                ("end", models.PositiveIntegerField(default=0)),
                (
                    "until",
                    models.DateTimeField(
                        help_text="Not recalled itself: what it says took the place of what is recalled there, then.",
                        null=True,
                    ),
                ),
                (
                    "starts_anew",
                    models.BooleanField(
                        default=False,
                        help_text="What was recalled before it made room and is no longer sent.",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sources", to="chatapp.run"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "source_id", "place", "start"), name="run_source_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RunStep",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("n", models.PositiveIntegerField(help_text="Its number in its run, from 1.")),
                ("purpose", models.CharField(max_length=12)),
                ("model_name", models.CharField(max_length=200)),
                (
                    "request_n",
                    models.PositiveIntegerField(
                        default=0, help_text="The number of its request; 0 = none is kept."
                    ),
                ),
                ("started_at", models.DateTimeField()),
                ("first_token_ms", models.PositiveIntegerField(null=True)),
                ("duration_ms", models.PositiveIntegerField()),
                ("input_tokens", models.PositiveIntegerField()),
                ("output_tokens", models.PositiveIntegerField()),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("exact", models.BooleanField()),
                (
                    "plan_step",
                    models.CharField(
                        blank=True,
                        help_text="In plan mode: the id of a step, `planner` or `analyst`.",
                        max_length=50,
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="steps", to="chatapp.run"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "n"), name="step_number_once")],
            },
        ),
        migrations.CreateModel(
            name="SearchOwner",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("next_ordinal", models.PositiveIntegerField(default=0)),
                (
                    "sealed_ordinal",
                    models.PositiveIntegerField(default=0, help_text="Documents below it are in blocks."),
                ),
                ("document_count", models.PositiveIntegerField(default=0)),
                ("total_length", models.PositiveBigIntegerField(default=0)),
                (
                    "edition",
                    models.UUIDField(
                        default=uuid.uuid4,
                        help_text="Another one with every write to what is sealed: what was read before is old.",
                    ),
                ),
                (
                    "analysis_version",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="How the texts of its documents were read into terms: `search.index.ANALYSIS_VERSION`.",
                    ),
                ),
                (
                    "analysed_ordinal",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Documents below it have the terms of that version; those above may have older ones.",
                    ),
                ),
                (
                    "vector_model",
                    models.CharField(blank=True, help_text="Whose vectors it has.", max_length=200),
                ),
                (
                    "embedded_ordinal",
                    models.PositiveIntegerField(default=0, help_text="Documents below it have vectors."),
                ),
                (
                    "scope",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.agent",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("user", None), ("scope", None), _connector="OR"),
                        name="search_owner_is_one_at_most",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchDocument",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField()),
                ("kind", models.PositiveSmallIntegerField(choices=[(1, "Message"), (2, "Entry")])),
                ("source_id", models.UUIDField()),
                ("start", models.PositiveIntegerField(default=0)),
                ("end", models.PositiveIntegerField()),
                (
                    "previous",
                    models.IntegerField(
                        default=-1, help_text="The ordinal said just before, in the same conversation."
                    ),
                ),
                ("length", models.PositiveSmallIntegerField()),
                ("said_at", models.DateTimeField()),
                ("terms", models.BinaryField()),
                ("counts", models.BinaryField()),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="chatapp.searchowner",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["source_id"], name="search_document_source")],
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "ordinal"), name="search_document_ordinal_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchCodes",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first_ordinal", models.PositiveIntegerField()),
                ("last_ordinal", models.PositiveIntegerField()),
                ("ordinals", models.BinaryField()),
                ("codes", models.BinaryField()),
                (
                    "edition",
                    models.UUIDField(
                        default=uuid.uuid4, help_text="Another one with every write to this row."
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.searchowner",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "first_ordinal"), name="search_codes_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchBlock",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("columns", models.BinaryField()),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="blocks",
                        to="chatapp.searchowner",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "number"), name="search_block_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchPosting",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("term", models.BigIntegerField()),
                ("block", models.PositiveIntegerField()),
                ("entries", models.BinaryField()),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.searchowner",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "term", "block"), name="search_posting_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchVectors",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField()),
                ("vectors", models.BinaryField()),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.searchowner",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "ordinal"), name="search_vectors_of_document_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SentRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("n", models.PositiveIntegerField(help_text="Its number in its run, from 1.")),
                ("purpose", models.CharField(max_length=12)),
                ("model_name", models.CharField(max_length=200)),
                ("sha256", models.CharField(max_length=64)),
                ("tokens", models.PositiveIntegerField(help_text="As estimated when it was sent.")),
                ("manifest", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sent_requests",
                        to="chatapp.run",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "n"), name="request_number_once")],
            },
        ),
        migrations.CreateModel(
            name="SetupLink",
            fields=[
                (
                    "id",
                    models.SmallIntegerField(default=1, editable=False, primary_key=True, serialize=False),
                ),
                ("token_hash", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="one_setup_link")],
            },
        ),
        migrations.CreateModel(
            name="SharedConversation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("last_position", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "branch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="chatapp.branch"
                    ),
                ),
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shared",
                        to="chatapp.conversation",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StaleDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="StoredClaim",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.PositiveIntegerField()),
                ("end", models.PositiveIntegerField()),
                ("key", models.BigIntegerField()),
                ("value", models.BigIntegerField()),
                (
                    "is_named",
                    models.BooleanField(
                        default=False,
                        help_text="A model named it, with what took its place; not read from its words.",
                    ),
                ),
                ("replaces", models.BooleanField(help_text="Whether it ends what was claimed before.")),
                ("said_at", models.DateTimeField()),
                (
                    "entry",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="claims",
                        to="chatapp.memoryentry",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="claims",
                        to="chatapp.message",
                    ),
                ),
                (
                    "superseded_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.storedclaim",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "key", "said_at"], name="claim_by_key"),
                    models.Index(fields=["user", "value"], name="claim_by_value"),
                ],
            },
        ),
        migrations.CreateModel(
            name="StoredResponse",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "previous",
                    models.UUIDField(help_text="The id of the response that it continues.", null=True),
                ),
                (
                    "owns_turn",
                    models.BooleanField(
                        help_text="Deleting it forgets question and answer; false where the client named a conversation."
                    ),
                ),
                ("metadata", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField()),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="chatapp.run"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Tombstone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("whole", models.BigIntegerField()),
                ("words", models.BinaryField()),
                (
                    "for_good",
                    models.BooleanField(
                        default=False, help_text="Its user wished that it is never remembered."
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "receipt",
                    models.ForeignKey(
                        help_text="Of the forgetting that barred it; the user can undo that.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tombstones",
                        to="chatapp.forgetreceipt",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.F("user"),
                        django.db.models.functions.text.Substr("words", 1, 8),
                        name="tombstone_by_first_word",
                    )
                ],
                "constraints": [models.UniqueConstraint(fields=("user", "whole"), name="tombstone_once")],
            },
        ),
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "step",
                    models.PositiveIntegerField(help_text="The number of the model call that asked for it."),
                ),
                ("ordinal", models.PositiveIntegerField(help_text="Its place in its run.")),
                ("call_id", models.CharField(max_length=40)),
                ("name", models.CharField(max_length=64)),
                ("arguments", models.TextField(blank=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("requested", "Requested"),
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("denied", "Denied"),
                            ("interrupted", "Interrupted"),
                        ],
                        max_length=12,
                    ),
                ),
                ("is_idempotent", models.BooleanField()),
                ("has_begun", models.BooleanField(default=False, help_text="Whether it may have happened.")),
                (
                    "decision",
                    models.CharField(
                        blank=True, help_text="What the user said to a call that waited.", max_length=10
                    ),
                ),
                (
                    "result",
                    models.JSONField(
                        default=list, help_text="The parts of its message; empty while there are none."
                    ),
                ),
                ("is_cut", models.BooleanField(default=False)),
                (
                    "is_told",
                    models.BooleanField(default=False, help_text="Whether its result is a message already."),
                ),
                ("requested_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "plan_step",
                    models.CharField(
                        blank=True, help_text="In plan mode: the step that asked for it.", max_length=50
                    ),
                ),
                (
                    "hook_id",
                    models.CharField(
                        blank=True, help_text="The hook that called it, where no model did.", max_length=100
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        help_text="In which it was asked for.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_calls",
                        to="chatapp.message",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_calls",
                        to="chatapp.run",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["requested", "waiting", "running"])),
                        fields=["requested_at"],
                        name="tool_call_open",
                    ),
                    models.Index(
                        condition=models.Q(("decision", ""), ("state", "waiting")),
                        fields=["run"],
                        name="tool_call_undecided",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "call_id"), name="tool_call_id_once"),
                    models.UniqueConstraint(fields=("run", "ordinal"), name="tool_call_order"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Usage",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("model_name", models.CharField(max_length=200)),
                ("purpose", models.CharField(max_length=12)),
                ("input_tokens", models.PositiveIntegerField()),
                ("output_tokens", models.PositiveIntegerField()),
                ("cached_tokens", models.PositiveIntegerField(default=0)),
                ("cost", models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                (
                    "kept_out_tokens",
                    models.PositiveIntegerField(
                        default=0, help_text="What compaction kept out of the request."
                    ),
                ),
                (
                    "compaction_saved",
                    models.DecimalField(
                        decimal_places=8,
                        help_text="What these would have cost at this call's mix.",
                        max_digits=14,
                        null=True,
                    ),
                ),
                (
                    "cache_saved",
                    models.DecimalField(
                        decimal_places=8,
                        help_text="How much more the cached tokens would have cost at the uncached price.",
                        max_digits=14,
                        null=True,
                    ),
                ),
                ("exact", models.BooleanField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="chatapp.modelconfig",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="usage_rows",
                        to="chatapp.run",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "usage",
                "indexes": [
                    models.Index(fields=["user", "created_at"], name="usage_by_user"),
                    models.Index(
                        condition=models.Q(("run", None)), fields=["conversation"], name="usage_not_shown"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("url", models.CharField(max_length=2000)),
                ("events", models.JSONField(default=list)),
                ("secret_encrypted", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "token",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to="chatapp.apitoken",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="webhooks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "seq",
                    models.PositiveBigIntegerField(help_text="The number of the event in its conversation."),
                ),
                ("type", models.CharField(max_length=40)),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Pending"), ("delivered", "Delivered"), ("failed", "Failed")],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField()),
                ("status_code", models.PositiveIntegerField(help_text="Of the last answer.", null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField()),
                ("delivered_at", models.DateTimeField(null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="chatapp.conversation",
                    ),
                ),
                (
                    "webhook",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="chatapp.webhook",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["next_attempt_at"],
                        name="webhook_delivery_due",
                    ),
                    models.Index(fields=["webhook", "-created_at", "-id"], name="webhook_delivery_log"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProfileVersion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=chatapp.operations.database.ids.new_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField(blank=True)),
                ("sources", models.JSONField(default=list, help_text="Like the profile's, of that version.")),
                (
                    "author",
                    models.CharField(
                        choices=[
                            ("user", "User"),
                            ("consolidation", "Consolidation"),
                            ("forgetting", "Forgetting"),
                        ],
                        max_length=13,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "profile",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="chatapp.profile",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("profile", "number"), name="profile_version_once")
                ],
            },
        ),
        migrations.AddField(
            model_name="trashedconversation",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("archived", False)),
                fields=["user", "-last_activity_at", "-id"],
                name="conversation_sidebar",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("archived", True)),
                fields=["user", "-last_activity_at", "-id"],
                name="conversation_archived",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("folder__isnull", False)),
                fields=["folder", "-last_activity_at", "-id"],
                name="conversation_in_folder",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("indexed_below__lt", models.F("next_position")), ("temporary", False)),
                fields=["user", "-last_activity_at", "-id"],
                name="conversation_behind",
            ),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(("next_position__gt", models.F("read_count"))),
                fields=["user", "-last_activity_at", "-id"],
                name="conversation_unread",
            ),
        ),
        migrations.AddIndex(
            model_name="trashedconversation",
            index=models.Index(fields=["user", "-trashed_at"], name="trash_by_user"),
        ),
        migrations.RunPython(keep_none, migrations.RunPython.noop),
    ]
