// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
)

const (
	testFingerprint = "ed594f1a871fb2c2ac1cc8284018860aac3850cad1e9bc934f27096f0e739f50"
	testToolImage   = "registry.example/tools/restart@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	testRunnerImage = "registry.example/assent/assent-runner@sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// commandInput is a command effect that uses everything a manifest can say
// without asking for the unusual.
func commandInput() job.Input {
	return job.Input{
		Namespace: "agents",
		SealID:    "00112233445566778899aabbccddeeff",
		Proposal: job.Proposal{
			Namespace: "agents", Name: "restart-1", UID: "6f0d0a5e-5c0e-4f43-9a57-0a1f2b3c4d5e",
			Fingerprint: testFingerprint,
		},
		Tool: "restart-service",
		Effect: contract.Effect{Command: &contract.CommandCall{
			Image:      testToolImage,
			Argv:       []string{"/restart", "--target", "agent-supplied-word"},
			WorkingDir: "/work",
			Env: []contract.ResolvedVariable{
				{Name: "MODE", Value: new("constant-of-the-manifest")},
				{Name: "API_TOKEN", Secret: &contract.ResolvedSecret{Name: "token", SecretName: "restart-credentials", Key: "token"}},
				{Name: "API_TOKEN_AGAIN", Secret: &contract.ResolvedSecret{Name: "token", SecretName: "restart-credentials", Key: "token"}},
			},
		}},
		Execution:    execution(),
		RunnerImage:  testRunnerImage,
		Endpoint:     testEndpoint(),
		StartTimeout: 5 * time.Minute,
	}
}

func httpInput() job.Input {
	in := commandInput()
	in.Tool = "open-ticket"
	in.Effect = contract.Effect{HTTP: &contract.HTTPCall{
		Method: "POST", URL: "https://tickets.example/agent-supplied-path", Body: `{"agent":"supplied-body"}`,
		Secrets: []contract.ResolvedSecret{{Name: "key", SecretName: "tickets", Key: "api-key", Hosts: []string{"tickets.example"}}},
	}}
	return in
}

func mcpInput() job.Input {
	in := commandInput()
	in.Tool = "search"
	in.Effect = contract.Effect{MCP: &contract.MCPCall{
		URL: "https://mcp.example/", Tool: "search", ToolDigest: testFingerprint, Arguments: `{"q":"agent-supplied-query"}`,
		Secrets: []contract.ResolvedSecret{{Name: "key", SecretName: "mcp", Key: "bearer", Hosts: []string{"mcp.example"}}},
	}}
	return in
}

func execution() contract.Execution {
	timeout := contract.Duration(5 * time.Minute)
	return contract.Execution{Timeout: &timeout, CPU: "500m", Memory: "256Mi", EphemeralStorage: "256Mi"}
}

func testEndpoint() job.Endpoint {
	return job.Endpoint{
		URL:        "https://assent-execution.assent-system.svc:8443",
		CA:         "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
		PublicKeys: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
		Addresses:  []string{"10.96.12.34"},
		Namespace:  "assent-system",
		PodLabels:  map[string]string{"app.kubernetes.io/name": "assent"},
		Port:       8443,
	}
}

func mustBuild(t testing.TB, in job.Input) *batchv1.Job {
	t.Helper()
	built, err := job.Build(in)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return built
}

func TestBuild_RefusesWhatWouldMakeNoUsefulJob(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*job.Input)
		want   string
	}{
		"a namespace is missing":                 {func(in *job.Input) { in.Namespace = "" }, "namespace must be set"},
		"the seal is missing":                    {func(in *job.Input) { in.SealID = "" }, "sealID must be set"},
		"the tool is missing":                    {func(in *job.Input) { in.Tool = "" }, "tool must be set"},
		"the proposal's UID is missing":          {func(in *job.Input) { in.Proposal.UID = "" }, "proposal must have"},
		"the fingerprint is not one":             {func(in *job.Input) { in.Proposal.Fingerprint = "ED" }, "proposal.fingerprint must be"},
		"the runner is named by tag":             {func(in *job.Input) { in.RunnerImage = "registry.example/runner:v1" }, "runnerImage must be"},
		"there is no effect":                     {func(in *job.Input) { in.Effect = contract.Effect{} }, "effect must be exactly one"},
		"there are two effects":                  {func(in *job.Input) { in.Effect.HTTP = &contract.HTTPCall{} }, "effect must be exactly one"},
		"the tool's image is missing":            {func(in *job.Input) { in.Effect.Command.Image = "" }, "effect.command.image"},
		"the timeout is not resolved":            {func(in *job.Input) { in.Execution.Timeout = nil }, "execution.timeout"},
		"the start timeout is missing":           {func(in *job.Input) { in.StartTimeout = 0 }, "startTimeout"},
		"cpu is no quantity":                     {func(in *job.Input) { in.Execution.CPU = "much" }, "execution.cpu"},
		"memory is negative":                     {func(in *job.Input) { in.Execution.Memory = "-1Gi" }, "execution.memory"},
		"ephemeral storage is nothing":           {func(in *job.Input) { in.Execution.EphemeralStorage = "0" }, "execution.ephemeralStorage"},
		"the endpoint speaks plain HTTP":         {func(in *job.Input) { in.Endpoint.URL = "http://assent:8443" }, "endpoint.url"},
		"the endpoint has no authority":          {func(in *job.Input) { in.Endpoint.CA = "" }, "endpoint.ca"},
		"there are no keys":                      {func(in *job.Input) { in.Endpoint.PublicKeys = "" }, "endpoint.publicKeys"},
		"an endpoint address is a name":          {func(in *job.Input) { in.Endpoint.Addresses = []string{"assent"} }, "endpoint.addresses"},
		"isolation is required without a canary": {func(in *job.Input) { in.Execution.RequireIsolation = true }, "canaries are needed"},
		"a canary is a name":                     {func(in *job.Input) { in.Canaries = []string{"canary:80"} }, "canaries must be ip:port"},
		"an HTTP effect has an identity": {func(in *job.Input) {
			*in = httpInput()
			in.Execution.ServiceAccountName = "tool"
		}, "execution.serviceAccountName"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := commandInput()
			tc.change(&in)
			built, err := job.Build(in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("Build = %v, %v; want an error with %q", built != nil, err, tc.want)
			}
		})
	}
}
