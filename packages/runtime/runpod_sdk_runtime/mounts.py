"""The volumes of a worker, by which the SDK's ``volume.path`` answers."""
import json
import os


def configure_mounts():
    """Gives the SDK the mounts of ``RUNPOD_MOUNTS``, before the user's code is imported."""
    text = os.environ.get('RUNPOD_MOUNTS')
    if not text:
        return
    mounts = json.loads(text)
    try:
        from runpod.apps import volume
    except ImportError:
        # An SDK before 2.0, as an image of its own may have, asks for no paths.
        return
    volume._configure_mounts(mounts)
