// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// certOf reads a certificate that makeCredentials wrote.
func certOf(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func pool(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certOf(t, data))
	return roots
}

func withCredentials(t *testing.T) Layout {
	t.Helper()
	l := newLayout(t)
	if err := l.makeCredentials("https://127.0.0.1:1", testTime); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCredentials_NameEachProgramAsTheBuiltInRolesExpect(t *testing.T) {
	t.Parallel()
	l := withCredentials(t)
	want := map[string]subject{
		l.conf("kubelet.kubeconfig"):                 {name: "system:node:assent-node", groups: []string{"system:nodes"}},
		l.conf("kube-proxy.kubeconfig"):              {name: "system:kube-proxy", groups: []string{"system:node-proxier"}},
		l.conf("kube-scheduler.kubeconfig"):          {name: "system:kube-scheduler"},
		l.conf("kube-controller-manager.kubeconfig"): {name: "system:kube-controller-manager"},
		l.Kubeconfig():                               {name: "kubernetes-admin", groups: []string{"system:masters"}},
	}
	for file, want := range want {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkUser(t, l, data, want)
	}
}

// checkUser checks what the API server will make of a kubeconfig's certificate.
func checkUser(t *testing.T, l Layout, kubeconfig []byte, want subject) {
	t.Helper()
	var config struct {
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(kubeconfig, &config); err != nil {
		t.Fatal(err)
	}
	user := config.Users[0].User
	if _, err := tls.X509KeyPair(user.Cert, user.Key); err != nil {
		t.Errorf("%s: %v", want.name, err)
	}
	cert := certOf(t, user.Cert)
	got := subject{name: cert.Subject.CommonName, groups: cert.Subject.Organization}
	slices.Sort(got.groups) // a set in the certificate
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(subject{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: pool(t, l.pki("ca.crt")), CurrentTime: testTime, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		t.Errorf("%s: %v", want.name, err)
	}
}

func TestCredentials_ServerCertificateHoldsForEveryWayToReachIt(t *testing.T) {
	t.Parallel()
	l := withCredentials(t)
	data, err := os.ReadFile(l.pki("apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", nodeIP, apiServiceIP, "localhost", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} {
		_, err := certOf(t, data).Verify(x509.VerifyOptions{DNSName: host, Roots: pool(t, l.pki("ca.crt")), CurrentTime: testTime})
		if err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// A front proxy may name any user: the users' authority must not make one.
func TestCredentials_FrontProxyHasAnAuthorityOfItsOwn(t *testing.T) {
	t.Parallel()
	l := withCredentials(t)
	data, err := os.ReadFile(l.pki("front-proxy-client.crt"))
	if err != nil {
		t.Fatal(err)
	}
	options := x509.VerifyOptions{CurrentTime: testTime, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	options.Roots = pool(t, l.pki("front-proxy-ca.crt"))
	if _, err := certOf(t, data).Verify(options); err != nil {
		t.Error(err)
	}
	options.Roots = pool(t, l.pki("ca.crt"))
	if _, err := certOf(t, data).Verify(options); err == nil {
		t.Error("the users' authority vouches for the front proxy")
	}
}

func TestCredentials_AreForTheOwnerOnly(t *testing.T) {
	t.Parallel()
	l := withCredentials(t)
	for _, pattern := range []string{l.pki("*"), l.conf("*.kubeconfig"), l.Kubeconfig()} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", filepath.Base(file), info.Mode().Perm())
			}
		}
	}
}

func TestUserKubeconfig_NamesUserAndGroups(t *testing.T) {
	t.Parallel()
	l := withCredentials(t)
	if _, err := l.UserKubeconfig("ann", nil, testTime); !errors.Is(err, ErrNotUp) {
		t.Errorf("without a cluster: error %v, want %v", err, ErrNotUp)
	}
	if err := l.save(&record{Server: "https://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	data, err := l.UserKubeconfig("ann", []string{"approvers", "staff"}, testTime)
	if err != nil {
		t.Fatal(err)
	}
	checkUser(t, l, data, subject{name: "ann", groups: []string{"approvers", "staff"}})
}

func TestClient_IsTheAdministratorOfTheKubeconfig(t *testing.T) {
	t.Parallel()
	client, err := withCredentials(t).client()
	if err != nil {
		t.Fatal(err)
	}
	if client.server != "https://127.0.0.1:1" {
		t.Errorf("server %s", client.server)
	}
}

func TestOverlaps_ComparesRangesBothWays(t *testing.T) {
	t.Parallel()
	parse := func(cidr string) *net.IPNet {
		_, parsed, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, test := range map[string]struct {
		route *net.IPNet
		want  bool
	}{
		"the default route leads everywhere": {parse("0.0.0.0/0"), false},
		"no destination":                     {nil, false},
		"a wider range":                      {parse("10.0.0.0/8"), true},
		"a narrower range":                   {parse("10.244.0.128/25"), true},
		"the same range":                     {parse("10.244.0.0/24"), true},
		"the range beside it":                {parse("10.244.1.0/24"), false},
	} {
		if got := overlaps(test.route, parse(podCIDR)); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
