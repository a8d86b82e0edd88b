"""The start of a worker: its phases, and the reason of the one that failed."""
import io
import os
import tarfile
import unittest

from runpod_sdk_runtime import bootstrap

from .support import WithFolder, run_module, write_build

RUNTIME = 'runpod_sdk_runtime.bootstrap'


class Phases(WithFolder):
    """Each phase, and what its failure says."""

    def failure(self, **env):
        """The last line of a start that has to fail."""
        done = run_module(RUNTIME, {'FLASH_RESOURCE_NAME': 'adder', **env}, self.folder)
        self.assertEqual(done.returncode, 1)
        return done.stderr.strip().splitlines()[-1]

    def test_a_build_without_a_manifest(self):
        said = self.failure(RUNPOD_PREBUILT_APP_DIR=str(self.folder))
        self.assertIn("failed during 'attach'", said)
        self.assertIn('has no runpod_manifest.json', said)

    def test_an_artifact_that_does_not_come(self):
        said = self.failure(RUNPOD_ARTIFACT_WAIT='0', FLASH_BUILD_ARTIFACT_PATH='/nowhere', RUNPOD_APP_DIR='/nowhere')
        self.assertIn("failed during 'locate': /nowhere did not appear", said)

    def test_a_resource_that_the_build_does_not_have(self):
        write_build(self.folder, [{'name': 'other'}])
        self.assertIn('the build has no resource adder', self.failure(RUNPOD_PREBUILT_APP_DIR=str(self.folder)))

    def test_missing_packages_of_the_system_are_named(self):
        write_build(self.folder, [{'name': 'adder', 'systemDependencies': ['no-such-program']}])
        said = self.failure(RUNPOD_PREBUILT_APP_DIR=str(self.folder), RUNYARD_PROCESS_WORKER='1')
        self.assertIn("failed during 'system'", said)
        self.assertIn('no-such-program', said)

    def test_an_unknown_kind(self):
        self.assertIn("RUNPOD_RUNTIME_KIND is 'pod'", self.failure(RUNPOD_RUNTIME_KIND='pod'))

    def test_a_module_that_fails_shows_its_traceback(self):
        write_build(self.folder, [{'name': 'adder'}], source='raise RuntimeError("no model")')
        self.assertEqual(self.failure(RUNPOD_PREBUILT_APP_DIR=str(self.folder)), 'RuntimeError: no model')


class Artifacts(WithFolder):
    """Builds that a worker unpacks for itself."""

    def pack(self, *members, mode=0o644):
        """Writes an archive with members of these names and kinds."""
        path = self.folder / 'artifact.tar.gz'
        with tarfile.open(path, 'w:gz') as archive:
            for name, kind in members:
                member = tarfile.TarInfo(name)
                member.type = kind
                member.mode = mode
                member.size = 2 if kind == tarfile.REGTYPE else 0
                member.linkname = '/etc/passwd'
                archive.addfile(member, io.BytesIO(b'{}'))
        return path

    def test_files_are_unpacked_once(self):
        artifact = self.pack(('runpod_manifest.json', tarfile.REGTYPE), ('env', tarfile.DIRTYPE))
        app = self.folder / 'app'
        env = {'FLASH_BUILD_ARTIFACT_PATH': str(artifact), 'RUNPOD_APP_DIR': str(app)}
        self.assertEqual(bootstrap.locate(env), app)
        os.remove(artifact)
        self.assertEqual(bootstrap.locate(env), app)
        self.assertTrue((app / 'env').is_dir())

    def test_programs_stay_programs_without_the_rights_of_anybody(self):
        artifact = self.pack(('env/bin/compiler', tarfile.REGTYPE), mode=0o4777)
        app = self.folder / 'app'
        bootstrap.locate({'FLASH_BUILD_ARTIFACT_PATH': str(artifact), 'RUNPOD_APP_DIR': str(app)})
        self.assertEqual((app / 'env/bin/compiler').stat().st_mode & 0o7777, 0o755)

    def test_nothing_is_written_outside_and_no_link_is_made(self):
        for member in [('../out', tarfile.REGTYPE), ('/out', tarfile.REGTYPE), ('link', tarfile.SYMTYPE)]:
            with self.subTest(member[0]):
                env = {'FLASH_BUILD_ARTIFACT_PATH': str(self.pack(member)), 'RUNPOD_APP_DIR': str(self.folder / 'app')}
                with self.assertRaisesRegex(bootstrap.BootstrapError, 'cannot be unpacked'):
                    bootstrap.locate(env)
                self.assertFalse((self.folder / 'out').exists())


if __name__ == '__main__':
    unittest.main()
