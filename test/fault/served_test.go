// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

var (
	requestLine = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
	labelPair   = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// served are the requests that the API server says it has answered with
// success, by verb and resource. It counts them itself, whoever asked.
func served(t testing.TB) map[string]int {
	t.Helper()
	out := map[string]int{}
	scanner := bufio.NewScanner(bytes.NewReader(serverMetrics(t)))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		m := requestLine.FindStringSubmatch(scanner.Text())
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range labelPair.FindAllStringSubmatch(m[1], -1) {
			labels[pair[1]] = pair[2]
		}
		if !strings.HasPrefix(labels["code"], "2") || labels["dry_run"] != "" {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(labels["verb"]+" "+labels["resource"]+"/"+labels["subresource"], "/")
		out[name] += int(n)
	}
	return out
}

// serverTime is the processor time, in seconds, that the API server has used.
func serverTime(t testing.TB) float64 {
	t.Helper()
	for line := range strings.Lines(string(serverMetrics(t))) {
		if text, ok := strings.CutPrefix(line, "process_cpu_seconds_total "); ok {
			seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			return seconds
		}
	}
	t.Fatal("the API server does not say how much processor time it used")
	return 0
}

func serverMetrics(t testing.TB) []byte {
	t.Helper()
	web, err := rest.HTTPClientFor(server)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := web.Get(server.Host + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the API server's metrics: %s, %v", answer.Status, err)
	}
	return text
}
