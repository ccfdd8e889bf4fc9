# One image for every service; docker-compose.yml says which command each runs.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=config.settings \
    BACKSTOP_ENV=production \
    BACKSTOP_DATA=/backstop/var \
    BACKSTOP_READY_FILE=/tmp/ready

WORKDIR /backstop
COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.txt

COPY . .
# The values are needed to read the settings and stay in this step.
RUN DJANGO_SECRET_KEY=none ALLOWED_HOSTS=none DATABASE_URL=postgresql://none REDIS_URL=redis://none \
    python manage.py collectstatic --no-input \
    && useradd --system --no-create-home backstop

USER backstop
