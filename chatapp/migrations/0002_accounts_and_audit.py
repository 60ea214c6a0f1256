from django.db import migrations, models

import chatapp.operations.database.ids


def approve_what_is_offered(apps, schema_editor):
    """Approve the tools that servers have already: what was in use stays in use, and changes wait from now on."""
    apps.get_model("chatapp", "McpServer").objects.update(approved_tools=models.F("tools"))


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0001_initial"),
    ]

    operations = [
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
                            ("address_changed", "e-mail address changed"),
                            ("second_factor_changed", "second factor changed"),
                            ("token_created", "token created"),
                            ("token_revoked", "token revoked"),
                            ("session_ended", "session ended"),
                            ("exported", "account exported"),
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
        migrations.AddField(
            model_name="apitoken",
            name="expires_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="mcpserver",
            name="approved_tools",
            field=models.JSONField(default=list, editable=False),
        ),
        migrations.RunPython(approve_what_is_offered, migrations.RunPython.noop),
    ]
