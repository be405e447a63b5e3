#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and tests sparsek from what lies beside this file, without a network. Needs Go and g++. With arguments it runs
# "go tool mage" with them instead, as in: build.sh bench -offline
# Everything it makes stays in this folder. The build checks each package against source/toolchain.lock.json and Go each
# module against source/go.sum.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
case $here in
*[!A-Za-z0-9/._+~@-]*)
	echo "build.sh: the folder $here has letters in its name that Go cannot take: move it" >&2
	exit 1
	;;
esac
for program in go "${CXX:-g++}"; do
	if ! command -v "$program" >/dev/null; then
		echo "build.sh: there is no $program: install it" >&2
		exit 1
	fi
done

# Go's own settings could lead elsewhere.
unset GOPRIVATE GONOPROXY GONOSUMDB GONOSUMCHECK GOINSECURE
export GOENV=off GOWORK=off GO111MODULE=on GOTOOLCHAIN=local
export GOPROXY="file://$here/modules" GOSUMDB=off GOFLAGS='-mod=readonly -modcacherw -buildvcs=false'
export GOMODCACHE="$here/work/modules" GOCACHE="$here/work/go-build" MAGEFILE_CACHE="$here/work/mage"
export SPARSEK_CACHE="$here/cache"

cd -- "$here/source"
if [ $# -gt 0 ]; then
	exec go tool mage "$@"
fi
go tool mage verify -offline
exec go tool mage test -offline
