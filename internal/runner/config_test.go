// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/pem"
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
)

func testEnvironment(t *testing.T) map[string]string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	return map[string]string{
		EnvEndpoint:    "https://assent-execution.assent-system.svc:8443",
		EnvCA:          string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		EnvPublicKeys:  string(attest.EncodePublicKeysPEM(newKeys(t).PublicKeys()...)),
		EnvProposal:    "agents/call-1",
		EnvProposalUID: "uid",
		EnvPodUID:      "pod",
		EnvTokenFile:   "/var/run/assent/token",
	}
}

func TestLoadConfig_ReadsWhatTheTemplateSets(t *testing.T) {
	t.Parallel()
	env := testEnvironment(t)
	env[EnvStartTimeout], env[EnvCanary], env[EnvFingerprint] = "90", "10.96.0.1:443,[fd00::1]:443", "f"
	c, err := LoadConfig(func(k string) string { return env[k] }, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	if c.Proposal != (attest.ObjectRef{Namespace: "agents", Name: "call-1", UID: "uid"}) || c.StartLimit != 90*time.Second ||
		len(c.Canaries) != 2 || c.Fingerprint != "f" || c.PodUID != "pod" || c.Endpoint.Host != "assent-execution.assent-system.svc:8443" {
		t.Errorf("configuration %+v", c)
	}
	delete(env, EnvStartTimeout)
	if c, err = LoadConfig(func(k string) string { return env[k] }, os.ReadFile); err != nil || c.StartLimit != DefaultStartTimeout {
		t.Errorf("without a start timeout: %v, %v", c.StartLimit, err)
	}
}

func TestLoadConfig_ReadsCertificatesAndKeysFromFilesToo(t *testing.T) {
	t.Parallel()
	env := testEnvironment(t)
	for _, name := range []string{EnvCA, EnvPublicKeys} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(env[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		env[name] = file
	}
	if _, err := LoadConfig(func(k string) string { return env[k] }, os.ReadFile); err != nil {
		t.Error(err)
	}
}

func TestLoadConfig_NamesTheVariableThatIsWrong(t *testing.T) {
	t.Parallel()
	good := testEnvironment(t)
	for name, tc := range map[string]struct{ variable, value, want string }{
		"no endpoint":            {EnvEndpoint, "", EnvEndpoint + " must be set"},
		"plain HTTP":             {EnvEndpoint, "http://h:1", EnvEndpoint + " must be https"},
		"an endpoint with path":  {EnvEndpoint, "https://h/x", EnvEndpoint + " must be https"},
		"an endpoint with user":  {EnvEndpoint, "https://u@h", EnvEndpoint + " must be https"},
		"an endpoint with query": {EnvEndpoint, "https://h?x", EnvEndpoint + " must be https"},
		"no authority":           {EnvCA, "", EnvCA + " must be set"},
		"a file that is not":     {EnvCA, "/no/such/file", EnvCA + " names a file"},
		"no certificate":         {EnvCA, "-----BEGIN CERTIFICATE-----", EnvCA + " must hold"},
		"no keys":                {EnvPublicKeys, "-----BEGIN PUBLIC KEY-----", EnvPublicKeys + " must hold"},
		"no proposal":            {EnvProposal, "agents", EnvProposal + " must be namespace/name"},
		"no name":                {EnvProposal, "agents/", EnvProposal + " must be namespace/name"},
		"no proposal UID":        {EnvProposalUID, "", EnvProposalUID + " must be set"},
		"no Pod UID":             {EnvPodUID, "", EnvPodUID + " must be set"},
		"no token":               {EnvTokenFile, "", EnvTokenFile + " must be set"},
		"a start timeout of 0":   {EnvStartTimeout, "0", EnvStartTimeout + " must be a positive"},
		"no number":              {EnvStartTimeout, "1m", EnvStartTimeout + " must be a positive"},
		"a canary that is none":  {EnvCanary, "10.0.0.1:1,h:2", EnvCanary + " must be a list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := maps.Clone(good)
			env[tc.variable] = tc.value
			_, err := LoadConfig(func(k string) string { return env[k] }, os.ReadFile)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestInstall_MakesABinaryThatNobodyCanChange(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "self")
	if err := os.WriteFile(source, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 { // a second time as well: the init container may be started again
		if err := Install(source, dir); err != nil {
			t.Fatal(err)
		}
	}
	installed := filepath.Join(dir, BinaryName)
	info, err := os.Stat(installed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(installed)
	if err != nil || string(data) != "binary" || info.Mode() != 0o555 {
		t.Errorf("installed %q with mode %v, %v", data, info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestInstall_SaysWhatFailed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Install(filepath.Join(dir, "none"), dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a source: %v", err)
	}
	if err := Install(os.Args[0], filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, BinaryName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Install(os.Args[0], dir); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Install(dir, t.TempDir()); err == nil {
		t.Error("a directory was copied")
	}
}
