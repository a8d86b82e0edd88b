"""Prepares a worker and becomes it. Uses the standard library alone: the SDK may lie in the build.

A worker with the name of a resource is deployed: its project and the packages in ``env/`` come from a build. Without a
name it is live: the source comes with each call. A phase that fails ends the process with its name and its reason.
"""
import importlib.util
import os
import stat
import sys
import tarfile
import time
from pathlib import Path

from . import packages
from .passage import open_passage
from .resources import MANIFEST, read_manifest, resource_name

MARKER = '.rp-unpacked'
USUAL_ARTIFACT = '/root/.runpod/artifact.tar.gz'
KINDS = {'queue': 'runpod_sdk_runtime.queue_worker', 'api': 'runpod_sdk_runtime.api_worker'}
LIVE_PACKAGES = {'queue': ('runpod', 'cloudpickle'), 'api': ('runpod', 'cloudpickle', 'fastapi', 'uvicorn')}


class BootstrapError(Exception):
    """A phase that failed, with the reason for people."""

    def __init__(self, phase, reason):
        super().__init__(f"worker bootstrap failed during '{phase}': {reason}")


def locate(env):
    """The folder of the unpacked build; unpacks the artifact where the server has not done so."""
    prebuilt = env.get('RUNPOD_PREBUILT_APP_DIR')
    if prebuilt and Path(prebuilt).is_dir():
        return Path(prebuilt)
    app = Path(env.get('RUNPOD_APP_DIR', '/app'))
    if (app / MARKER).exists():
        return app
    artifact = Path(env.get('FLASH_BUILD_ARTIFACT_PATH', USUAL_ARTIFACT))
    patience = float(env.get('RUNPOD_ARTIFACT_WAIT', '300'))
    end = time.monotonic() + patience
    while not artifact.exists():
        if time.monotonic() >= end:
            raise BootstrapError('locate', f'{artifact} did not appear within {patience:.0f} seconds')
        time.sleep(0.5)
    try:
        unpack(artifact, app)
    except (OSError, tarfile.TarError, ValueError) as error:
        raise BootstrapError('locate', f'{artifact} cannot be unpacked: {error}') from error
    return app


def unpack(artifact, app):
    """Unpacks plain files and folders, and marks the folder at the end, so that a restart does not repeat it."""
    app.mkdir(parents=True, exist_ok=True)
    root = app.resolve()
    with tarfile.open(artifact, 'r:gz') as archive:
        for member in archive:
            if not (member.isfile() or member.isdir()):
                raise ValueError(f'{member.name} is neither a file nor a folder')
            if not (root / member.name).resolve().is_relative_to(root):
                raise ValueError(f'{member.name} lies outside of the build')
            archive.extract(member, root, set_attrs=False)
            # Packages start programs of theirs, such as compilers for GPUs.
            if member.isfile() and member.mode & stat.S_IXUSR:
                (root / member.name).chmod(0o755)
    (app / MARKER).touch()


def attach(app, env):
    """Puts the packages of the build and its project in front of all others."""
    if not (app / MANIFEST).is_file():
        raise BootstrapError('attach', f'{app} has no {MANIFEST}')
    prepend(env, [app / 'env', app])
    if importlib.util.find_spec('runpod') is None:
        raise BootstrapError('attach', f'the SDK (runpod) is neither in {app}/env nor in {sys.executable}')


def prepend(env, folders):
    """Puts folders in front of ``PYTHONPATH`` and of the path of this process."""
    texts = [str(folder) for folder in folders]
    sys.path[:0] = texts
    env['PYTHONPATH'] = os.pathsep.join([*texts, *filter(None, [env.get('PYTHONPATH')])])


def verify(manifest, env):
    """Installs packages that the build left out because images usually have them."""
    missing = [name for name in manifest.get('excludedPackages', []) if not packages.is_importable(name)]
    if not missing:
        return
    print(f"packages that the build leaves out are missing, and are installed now: {', '.join(missing)}", flush=True)
    install('verify', missing, env)


def install(phase, names, env):
    """Installs packages beside the build."""
    try:
        prepend(env, [packages.install(names)])
    except packages.InstallError as error:
        raise BootstrapError(phase, str(error)) from error


def system(manifest, name):
    """Sees that the packages of the system are there that this resource asks for."""
    entry = next((one for one in manifest.get('resources', []) if one.get('name') == name), None)
    if entry is None:
        raise BootstrapError('system', f'the build has no resource {name}')
    try:
        packages.provide_system(entry.get('systemDependencies', []))
    except packages.InstallError as error:
        raise BootstrapError('system', str(error)) from error


def prepare_deployed(name, env):
    """All phases of a deployed worker."""
    app = locate(env)
    attach(app, env)
    try:
        manifest = read_manifest(app)
    except ValueError as error:
        raise BootstrapError('attach', str(error)) from error
    verify(manifest, env)
    system(manifest, name)
    env['RUNPOD_APP_DIR'] = str(app)


def prepare_live(kind, env):
    """Sees that a live worker has the SDK and, for an API, its server."""
    missing = [name for name in LIVE_PACKAGES[kind] if not packages.is_importable(name)]
    if missing:
        named = env.get('RUNPOD_PACKAGE_SPEC', 'runpod>=2.0.0rc2')
        install('attach', [named if name == 'runpod' else name for name in missing], env)


def main():
    """Prepares the worker and replaces this process with it."""
    env = dict(os.environ)
    kind = env.get('RUNPOD_RUNTIME_KIND', 'queue')
    try:
        if kind not in KINDS:
            raise BootstrapError('locate', f"RUNPOD_RUNTIME_KIND is '{kind}', and must be queue or api")
        name = resource_name(env)
        if name is None:
            prepare_live(kind, env)
        else:
            prepare_deployed(name, env)
    except BootstrapError as error:
        sys.exit(str(error))
    open_passage(env)
    os.execve(sys.executable, [sys.executable, '-m', KINDS[kind]], env)


if __name__ == '__main__':
    main()
