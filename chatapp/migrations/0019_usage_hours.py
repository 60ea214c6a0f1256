from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatapp", "0018_stored_settings")]

    operations = [
        migrations.CreateModel(
            name="UsageHour",
            fields=[
                ("hour", models.DateTimeField(primary_key=True, serialize=False)),
                ("input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("cost", models.DecimalField(decimal_places=8, max_digits=20, null=True)),
            ],
        ),
    ]
