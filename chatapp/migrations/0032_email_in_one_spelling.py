import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatapp", "0031_tombstones_by_first_word"),
    ]

    operations = [
        migrations.AlterConstraint(
            model_name="user",
            name="user_email_once",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("email"),
                name="user_email_once",
                violation_error_message="There is an account with this email address already.",
            ),
        ),
        migrations.AlterField(
            model_name="invitation",
            name="email",
            field=models.EmailField(max_length=254),
        ),
        migrations.AlterField(
            model_name="auditevent",
            name="kind",
            field=models.CharField(
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
    ]
