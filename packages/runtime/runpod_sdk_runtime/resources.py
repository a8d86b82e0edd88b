"""The build of a deployed worker: its manifest, and the object that its resource names."""
import importlib
import json
import sys
from pathlib import Path

MANIFEST = 'runpod_manifest.json'
RESOURCE_VARIABLES = ('FLASH_RESOURCE_NAME', 'RUNPOD_RESOURCE_NAME')


def resource_name(env):
    """The name of the resource of a deployed worker; None for a live one."""
    return next((env[name] for name in RESOURCE_VARIABLES if env.get(name)), None)


def read_manifest(app):
    """The manifest of a build. Raises ValueError for one that cannot be used."""
    path = Path(app) / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise ValueError(f'{path} cannot be read: {error}') from error
    if not isinstance(manifest, dict):
        raise ValueError(f'{path} is not an object')
    return manifest


def deployed_handle(app, name):
    """Imports the module of a resource, and returns the handle of the SDK that has its name."""
    entry = next((one for one in read_manifest(app).get('resources', []) if one.get('name') == name), None)
    if entry is None:
        raise LookupError(f'the build has no resource {name}')
    # The present folder comes first, and an image of the user may have a module of the same name there.
    if not Path(MANIFEST).is_file():
        sys.path[:0] = [str(Path(app) / 'env'), str(app)]
    return find_handle(importlib.import_module(entry['module']), name)


def find_handle(module, name):
    """The handle of the SDK in a module whose resource has this name."""
    from runpod.apps.handles import ApiHandle, FunctionHandle

    for value in vars(module).values():
        if isinstance(value, (ApiHandle, FunctionHandle)) and value.spec.name == name:
            return value
    raise LookupError(f'module {module.__name__} has no resource {name}')
