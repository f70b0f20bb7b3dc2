# The page in a container: docker build -t atelier . && docker run -p 7860:7860 atelier
# PIP_OPTIONS go to pip: name there the index that has torch for your CUDA, or for CPUs alone, which is a far smaller image.
FROM python:3.12-slim

ARG PIP_OPTIONS=
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgl1 libglib2.0-0 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home atelier

WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir $PIP_OPTIONS -r requirements.txt
COPY . .
RUN mkdir -p /app/runs && chown atelier /app/runs

USER atelier
ENV GRADIO_TEMP_DIR=/tmp/atelier PYTHONDONTWRITEBYTECODE=1
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=5s --start-period=90s \
    CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/health', timeout=4)"
CMD ["python", "app.py", "--host", "0.0.0.0"]
