// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"time"
)

// clients are the programs of the cluster that talk to kube-apiserver, under
// the user names that its built-in roles and the Node authorizer expect.
var clients = map[string]subject{
	"kube-controller-manager": {name: "system:kube-controller-manager"},
	"kube-scheduler":          {name: "system:kube-scheduler"},
	"kube-proxy":              {name: "system:kube-proxy", groups: []string{"system:node-proxier"}},
	policyAgent:               {name: "system:network-policies"},
	"kubelet":                 {name: "system:node:" + nodeName, groups: []string{"system:nodes"}},
}

// admin is the user of the kubeconfig that the commands print.
var admin = subject{name: "kubernetes-admin", groups: []string{"system:masters"}}

// makeCredentials writes every key, certificate and kubeconfig of a cluster
// whose API server answers at server.
func (l Layout) makeCredentials(server string, now time.Time) error {
	ca, id, err := newAuthority("assent-cluster", now)
	if err != nil {
		return err
	}
	if err := l.write("ca", id); err != nil {
		return err
	}
	if err := l.makeServers(ca, now); err != nil {
		return err
	}
	if err := l.makeFrontProxy(now); err != nil {
		return err
	}
	if err := l.makeServiceAccountKey(); err != nil {
		return err
	}
	if err := l.makeClient(ca, server, admin, l.Kubeconfig(), now); err != nil {
		return err
	}
	for program, user := range clients {
		if err := l.makeClient(ca, server, user, l.conf(program+".kubeconfig"), now); err != nil {
			return err
		}
	}
	return nil
}

func (l Layout) makeServers(ca *authority, now time.Time) error {
	for name, s := range map[string]subject{
		"apiserver": {name: "kube-apiserver", hosts: []string{
			"127.0.0.1", nodeIP, apiServiceIP, "localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc." + clusterDomain,
		}},
		"kubelet": {name: "system:node:" + nodeName, groups: []string{"system:nodes"}, hosts: []string{nodeIP, nodeName}},
		// kube-apiserver reads logs and runs exec in Pods as this user.
		"apiserver-kubelet-client": {name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
	} {
		id, err := ca.issue(s, now)
		if err != nil {
			return err
		}
		if err := l.write(name, id); err != nil {
			return err
		}
	}
	return nil
}

// makeFrontProxy uses an authority of its own, because whoever holds such a
// certificate may act as any user towards an aggregated API server.
func (l Layout) makeFrontProxy(now time.Time) error {
	ca, id, err := newAuthority("assent-cluster-front-proxy", now)
	if err != nil {
		return err
	}
	if err := l.write("front-proxy-ca", id); err != nil {
		return err
	}
	client, err := ca.issue(subject{name: "front-proxy-client"}, now)
	if err != nil {
		return err
	}
	return l.write("front-proxy-client", client)
}

func (l Layout) makeServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the service account key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("making the service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("making the service account key: %w", err)
	}
	for name, block := range map[string]*pem.Block{
		"service-account.key": {Type: "PRIVATE KEY", Bytes: private},
		"service-account.pub": {Type: "PUBLIC KEY", Bytes: public},
	} {
		if err := os.WriteFile(l.pki(name), pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("storing the service account key: %w", err)
		}
	}
	return nil
}

func (l Layout) makeClient(ca *authority, server string, user subject, path string, now time.Time) error {
	id, err := ca.issue(user, now)
	if err != nil {
		return err
	}
	config, err := kubeconfig(server, ca.pem, user.name, id)
	if err != nil {
		return fmt.Errorf("rendering the kubeconfig of %s: %w", user.name, err)
	}
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return fmt.Errorf("storing the kubeconfig of %s: %w", user.name, err)
	}
	return nil
}

// UserKubeconfig makes a kubeconfig for a further user of a running cluster,
// authenticated by a client certificate. It grants nothing: roles are bound to
// the name and the groups with RBAC as usual.
func (l Layout) UserKubeconfig(name string, groups []string, now time.Time) ([]byte, error) {
	rec, err := l.load()
	if err != nil {
		return nil, err
	}
	ca, err := l.authority()
	if err != nil {
		return nil, err
	}
	id, err := ca.issue(subject{name: name, groups: groups}, now)
	if err != nil {
		return nil, err
	}
	return kubeconfig(rec.Server, ca.pem, name, id)
}
