"""The volumes of a worker, by which the SDK's ``volume.path`` answers."""
import json
import os


def configure_mounts():
    """Gives the SDK the mounts of ``RUNPOD_MOUNTS``, before the user's code is imported."""
    text = os.environ.get('RUNPOD_MOUNTS')
    if not text:
        return
    from runpod.apps import volume

    volume._configure_mounts(json.loads(text))
