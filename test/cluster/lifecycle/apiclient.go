// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"sigs.k8s.io/yaml"
)

// apiClient asks the cluster's API server for the few things that starting it
// depends on. A Kubernetes client library would cost this tool a minute of
// compile time for three GET requests.
type apiClient struct {
	server string
	http   *http.Client
}

// client acts as the administrator, with the kubeconfig of the cluster.
func (l Layout) client() (*apiClient, error) {
	data, err := os.ReadFile(l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, fmt.Errorf("reading the kubeconfig %s: it must hold one cluster and one user", l.Kubeconfig())
	}
	cluster, user := config.Clusters[0].Cluster, config.Users[0].User
	cert, err := tls.X509KeyPair(user.Cert, user.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cluster.CA) {
		return nil, errors.New("reading the kubeconfig: no certificate authority")
	}
	return &apiClient{server: cluster.Server, http: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		},
	}}, nil
}

// get returns the body of a 200 answer.
func (c *apiClient) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return body, nil
}

func (c *apiClient) ready(ctx context.Context) bool {
	_, err := c.get(ctx, "/readyz")
	return err == nil
}

// condition reports whether the object at path has the condition with status
// True. An object that is not there yet has no conditions.
func (c *apiClient) condition(ctx context.Context, path, kind string) bool {
	body, err := c.get(ctx, path)
	if err != nil {
		return false
	}
	var object struct {
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	}
	if json.Unmarshal(body, &object) != nil {
		return false
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == "True"
		}
	}
	return false
}
