// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

const (
	namePrefix = "call-"
	// maxLabelValue is what Kubernetes allows.
	maxLabelValue = 63
)

var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// Name is the name of the Job for the seal with this ID. Two objects that carry one seal, of which one must be a copy,
// therefore meet in one Job. The name is a DNS label that leaves room for the
// suffix of a Pod's name.
func Name(sealID string) string {
	sum := sha256.Sum256([]byte("assent.dev/job-name/v1\n" + sealID))
	return namePrefix + hex.EncodeToString(sum[:20])
}

// toolLabel is the tool's name as far as a label value can hold it. The label
// is for selection by people; nothing is decided on it.
func toolLabel(tool string) string {
	if len(tool) <= maxLabelValue && labelValue.MatchString(tool) {
		return tool
	}
	sum := sha256.Sum256([]byte(tool))
	return "tool-" + hex.EncodeToString(sum[:20])
}
