#!/usr/bin/env bash
# Copyright The Assent Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command on a cluster: the one that KUBECONFIG names, where the images
# must have been loaded already, or else the development cluster, which is
# started, given the images of dist/images, and stopped again. A cluster that
# was up before stays up. With KEEP=1 it stays up in any case.

set -euo pipefail
cd "$(dirname "$0")/.."

cluster=bin/assent-cluster
export ASSENT_IMAGES="$PWD/dist/images/images.json"

if [ "${ON_CLUSTER_STARTED:-}" = yes ]; then
	"$cluster" load dist/images/*.tar
	exec "$@"
fi

if [ -n "${KUBECONFIG:-}" ]; then
	exec "$@"
fi

make --no-print-directory "$PWD/$cluster"
if [ -n "${KEEP:-}" ]; then
	"$cluster" up
fi
ON_CLUSTER_STARTED=yes exec "$cluster" run -- "$0" "$@"
