"""Packages that a worker installs for itself, in a folder that workers of its endpoint share."""
import hashlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Set by a server whose workers are processes of its machine, where nothing may be installed for all.
ON_MACHINE = 'RUNYARD_PROCESS_WORKER'
OUTPUT_END = 2_000
_installed_systems = set()


class InstallError(Exception):
    """Packages that could not be installed, with the reason for people."""


def is_importable(name):
    """True where a module of this name is found, without importing it."""
    try:
        return importlib.util.find_spec(name.replace('-', '_')) is not None
    except (ImportError, ValueError):
        return False


def install(requirements):
    """Installs requirements of pip, once for each list, and returns their folder. Raises InstallError."""
    cache = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'runtime-packages'
    version = f'{sys.version_info[0]}.{sys.version_info[1]}'
    digest = hashlib.sha256('\n'.join([version, *sorted(requirements)]).encode()).hexdigest()[:24]
    folder = cache / digest
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f'{digest}-', dir=cache))
        try:
            run_pip(['install', '--quiet', '--target', str(draft), *requirements], requirements)
            # Another worker may have been faster.
            if not folder.is_dir():
                draft.rename(folder)
        except OSError as error:
            if not folder.is_dir():
                raise InstallError(f'{folder} cannot be written: {error}') from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder


def add(requirements):
    """As ``install``, for this process: later imports find the packages."""
    folder = str(install(requirements))
    if folder not in sys.path:
        sys.path.insert(0, folder)
        importlib.invalidate_caches()


def run_pip(words, requirements):
    """Runs pip of this Python. Raises InstallError with the end of its output."""
    command = [sys.executable, '-m', 'pip', '--disable-pip-version-check', *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise InstallError(f"pip could not install {', '.join(requirements)}: {done.stdout.strip()[-OUTPUT_END:]}")


def provide_system(names):
    """Sees that packages of the system are there: as programs or in dpkg, else by apt-get. Raises InstallError."""
    missing = [name for name in names if name not in _installed_systems and not has_system(name)]
    if missing and (ON_MACHINE in os.environ or shutil.which('apt-get') is None):
        reason = 'the machine lacks packages that the resource asks for, and a worker cannot install them'
        raise InstallError(f"{reason}: {', '.join(missing)}")
    if missing:
        quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.PIPE, 'text': True, 'check': False}
        for words in (['update'], ['install', '-y', '--no-install-recommends', *missing]):
            done = subprocess.run(['apt-get', *words], **quiet)
        if done.returncode != 0:
            raise InstallError(f"apt-get could not install {', '.join(missing)}: {done.stderr.strip()[-OUTPUT_END:]}")
    _installed_systems.update(names)


def has_system(name):
    """True where a package of the system is installed, or a program has its name."""
    if shutil.which(name) is not None:
        return True
    if shutil.which('dpkg-query') is None:
        return False
    done = subprocess.run(['dpkg-query', '-W', '-f=${Status}', name], capture_output=True, text=True, check=False)
    return done.stdout.endswith(' installed')
