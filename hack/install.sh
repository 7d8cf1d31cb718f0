#!/usr/bin/env bash
# Copyright The Assent Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Installs Assent from its charts on the cluster that KUBECONFIG names, with the
# images of dist/images, which the cluster must be able to get by their digests.
# On the development cluster it also provides the volume for the audit log.

set -euo pipefail
cd "$(dirname "$0")/.."

helm=${HELM:-bin/helm}
images=${ASSENT_IMAGES:-dist/images/images.json}
namespace=assent-system

image() { sed -n "s|.*\"$1\": \"\(.*\)\".*|\1|p" "$images"; }

values=(
	--set "image.operator=$(image assent)"
	--set "image.runner=$(image assent-runner)"
)
if [ -n "${ASSENT_STATE:-}" ]; then
	kubectl=$ASSENT_STATE/bin/kubectl
	mkdir -p "$ASSENT_STATE/data/audit"
	node=$("$kubectl" get nodes -o 'jsonpath={.items[0].metadata.name}')
	sed -e "s|\${AUDIT_PATH}|$ASSENT_STATE/data/audit|" -e "s|\${NODE_NAME}|$node|" test/demo/manifests/audit-volume.yaml |
		"$kubectl" apply -f - >/dev/null
	values+=(--set audit.persistence.storageClassName=- --set audit.persistence.size=1Gi)
fi

"$helm" upgrade --install assent-crds charts/assent-crds --namespace "$namespace" --create-namespace --wait >/dev/null
"$helm" upgrade --install assent charts/assent --namespace "$namespace" "${values[@]}" "$@" --wait --timeout 5m >/dev/null
