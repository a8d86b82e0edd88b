#!/bin/sh
# Boots a systemd of its own on a copy of this machine: `systemd-machine.sh <folder> <repository>`, as process 1 in namespaces of its own. What it
# writes lies in memory, in the folder, and goes with it. It begins with no units but those that Debian brings, and none of these is wanted. The
# repository is at /repository, wherever it lies here: a copy has no other file systems of this machine, and a /tmp of its own.
set -eu
folder=$1 repository=$2
mount --make-rprivate /
# The folder may be in the way of the repository.
cd "$repository"
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/written" "$folder/work" "$folder/root" "$folder/repository"
mount --bind . "$folder/repository"
cd "$folder"
# Paths with commas and colons cannot be named in options.
mount -t overlay -o lowerdir=/,upperdir=written,workdir=work overlay root
mkdir -p changed/written changed/work root/repository
mount -t overlay -o lowerdir=repository,upperdir=changed/written,workdir=changed/work overlay root/repository
cd root
mount -t proc proc proc
mount -t sysfs sysfs sys
# Version 2 alone, also where the machine has both.
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/shm dev/pts dev/net
# Its rights are those that udev gives it.
mknod -m 666 dev/net/tun c 10 200
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs tmpfs run
rm -rf etc/systemd/system etc/fstab var/lib/systemd
mkdir -p machine etc/systemd/system
# Without an id it would be a first boot, which asks questions.
printf '0123456789abcdef0123456789abcdef\n' >etc/machine-id
printf '[Unit]\nDescription=The machine of the tests\nDefaultDependencies=no\n' >etc/systemd/system/machine.target
pivot_root . machine
umount -l machine
container=other exec /usr/lib/systemd/systemd --system --unit=machine.target --log-target=null --show-status=no </dev/null
