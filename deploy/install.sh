#!/bin/sh
# Installs Runyard from this repository as a service of systemd, or brings an installed one up to date: deploy/install.sh [--yes] [options].
# It says what it would do; with --yes it does it.
set -eu

usage() {
  cat <<'TEXT'
deploy/install.sh [options]      (as root, in a clone of Runyard after `npm ci`)

  --yes               do it; without this it only says what it would do
  --cages             let workers run in cages of bubblewrap (docs/guides/isolation.md)
  --no-start          start nothing
  --program <folder>  install this folder instead of building one (npm run image -- --context <folder>)
  --root <folder>     write below this folder; makes no user and calls no systemd
  --help              show this text
TEXT
}

yes=no cages=no start=yes program= root=
while [ $# -gt 0 ]; do
  case $1 in
    --yes) yes=yes ;;
    --cages) cages=yes ;;
    --no-start) start=no ;;
    --program) program=${2:?--program takes a folder} && shift ;;
    --root) root=${2:?--root takes a folder} && shift ;;
    --help) usage && exit 0 ;;
    *) printf 'install.sh: what is %s? See --help.\n' "$1" >&2 && exit 64 ;;
  esac
  shift
done
if [ -n "$program" ] && [ ! -e "$program/bin/runyard" ]; then
  printf 'install.sh: %s has no bin/runyard; npm run image -- --context <folder> makes such a folder\n' "$program" >&2
  exit 66
fi
kit=$(cd "$(dirname "$0")" && pwd -P)
home=$root/opt/runyard
settings=$root/etc/runyard
units=$root/etc/systemd/system

# `step <what> <command>` says what it does, and does it if it may.
step() {
  printf '  %s\n' "$1"
  shift
  if [ "$yes" = yes ]; then "$@"; fi
}

make_user() { useradd --system --user-group --home-dir /var/lib/runyard --no-create-home --shell /usr/sbin/nologin runyard; }

place_program() {
  rm -rf "$home.new"
  mkdir -p "$home.new"
  if [ -n "$program" ]; then cp -R "$program/." "$home.new"; else (cd "$kit/.." && ./bin/node scripts/image.ts --context "$home.new"); fi
  install -m 0755 "$kit/systemd/runyard-in-group" "$home.new/bin/runyard-in-group"
  chmod -R a+rX,go-w "$home.new"
  rm -rf "$home.old"
  if [ -d "$home" ]; then mv "$home" "$home.old"; fi
  mv "$home.new" "$home"
}

place_units() {
  mkdir -p "$units"
  install -m 0644 "$kit/systemd/runyard.service" "$kit/systemd/runyard.socket" "$units"
}

allow_cages() {
  mkdir -p "$units/runyard.service.d"
  install -m 0644 "$kit/systemd/cages.conf" "$units/runyard.service.d/cages.conf"
}

make_settings() {
  install -d -m 0755 "$settings"
  (umask 077 && printf '# Settings of this machine, such as RUNYARD_PUBLIC_URL=https://runyard.example.com; see docs/reference/settings.md\n' >"$settings/environment")
}

begin() {
  systemctl enable --quiet runyard.socket runyard.service
  systemctl start runyard.socket
  systemctl restart runyard.service
}

if [ "$yes" = yes ] && [ -z "$root" ] && [ "$(id -u)" != 0 ]; then
  printf 'install.sh: only root can install a service\n' >&2
  exit 77
fi
if [ "$yes" = yes ]; then printf 'Installing Runyard:\n'; else printf 'This would be done, with --yes:\n'; fi
if [ -z "$root" ] && ! id runyard >/dev/null 2>&1; then step 'make the user runyard, who owns nothing but /var/lib/runyard' make_user; fi
if [ -d "$home" ]; then
  step "replace the program in $home; the one before stays in $home.old" place_program
else
  step "put the program, with its Node, into $home" place_program
fi
step "put runyard.service and runyard.socket into $units" place_units
if [ "$cages" = yes ]; then step "let workers run in cages: $units/runyard.service.d/cages.conf" allow_cages; fi
if [ ! -e "$settings/environment" ]; then step "make a file for settings: $settings/environment" make_settings; fi
if [ -z "$root" ]; then
  step 'have systemd read its units again' systemctl daemon-reload
  if [ "$start" = yes ]; then step 'start both now and at each boot; a running server is restarted, and calls wait meanwhile' begin; fi
fi
if [ "$yes" = yes ] && [ -z "$root" ] && [ "$start" = yes ]; then
  printf 'Runyard is at http://127.0.0.1:8080, its API key in /var/lib/runyard/api-key. Its log: journalctl -u runyard\n'
fi
