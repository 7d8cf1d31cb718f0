// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	namespace = "assent-demo"
	manifests = "test/demo/manifests"
	patience  = 90 * time.Second
)

// demo drives kubectl as several people and notes what held.
type demo struct {
	ctx     context.Context
	kubectl string
	// state is the folder of the development cluster; empty on any other.
	state string
	// folder holds the kubeconfigs of the demo's people.
	folder string
	checks []check
	images map[string]string
	// authority is the certificate, in PEM, that the service's is signed by.
	authority string
	began     time.Time
	// before is how many calls the service had seen, so that the demo can be
	// shown again on a cluster that was kept.
	before int
}

type check struct {
	what string
	held bool
	note string
}

func newDemo(ctx context.Context) (*demo, error) {
	d := &demo{ctx: ctx, began: time.Now(), kubectl: "kubectl", state: os.Getenv("ASSENT_STATE")}
	if d.state != "" {
		d.kubectl = filepath.Join(d.state, "bin", "kubectl")
	}
	if os.Getenv("KUBECONFIG") == "" {
		return nil, errors.New("KUBECONFIG is not set; start this by \"make demo\"")
	}
	list, err := os.ReadFile(os.Getenv("ASSENT_IMAGES"))
	if err != nil {
		return nil, fmt.Errorf("reading the list of images, which \"make images\" writes: %w", err)
	}
	if err := json.Unmarshal(list, &d.images); err != nil {
		return nil, fmt.Errorf("reading the list of images: %w", err)
	}
	if d.folder, err = os.MkdirTemp("", "assent-demo-"); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *demo) close() { _ = os.RemoveAll(d.folder) }

// as runs kubectl as somebody; the empty name is the administrator. It returns
// what was printed, and on failure what was printed to standard error.
func (d *demo) as(who, input string, args ...string) (string, error) {
	if who != "" {
		args = append([]string{"--kubeconfig", filepath.Join(d.folder, who)}, args...)
		if _, err := os.Stat(filepath.Join(d.folder, who)); err != nil {
			args[0], args[1] = "--as", who
		}
	}
	cmd := exec.CommandContext(d.ctx, d.kubectl, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return problems.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, problems.String())
	}
	return out.String(), nil
}

func (d *demo) admin(args ...string) (string, error) { return d.as("", "", args...) }

// program runs another program of the repository and shows what it says only
// if it fails.
func (d *demo) program(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(d.ctx, name, args...)
	out, err := cmd.Output()
	if err != nil {
		if failed, is := errors.AsType[*exec.ExitError](err); is {
			return "", fmt.Errorf("%s: %w: %s%s", name, err, out, failed.Stderr)
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(out), nil
}

func (d *demo) heading(text string) { fmt.Printf("\n%s\n", text) }

func (d *demo) say(format string, args ...any) { fmt.Printf("    "+format+"\n", args...) }

// check notes whether something held.
func (d *demo) check(what string, held bool, note string) {
	d.checks = append(d.checks, check{what, held, note})
	mark := "ok  "
	if !held {
		mark = "FAIL"
	}
	fmt.Printf("  %s  %s: %s\n", mark, what, note)
}

// prepare installs Assent and the demo's objects.
func (d *demo) prepare() error {
	d.heading("Installing Assent from its charts")
	began := time.Now()
	if _, err := d.program("hack/install.sh"); err != nil {
		return err
	}
	d.say("installed in %s", time.Since(began).Round(time.Second))
	d.heading("Creating tools, policies and people in namespace " + namespace)
	if err := d.apply("10-namespace.yaml"); err != nil {
		return err
	}
	if err := d.secrets(); err != nil {
		return err
	}
	for _, file := range []string{"20-ledger.yaml", "30-people.yaml", "40-tools.yaml", "45-servers.yaml", "50-policies.yaml"} {
		if err := d.apply(file); err != nil {
			return err
		}
	}
	if err := d.people(); err != nil {
		return err
	}
	if _, err := d.admin("-n", namespace, "rollout", "status", "deployment/ledger", "--timeout", patience.String()); err != nil {
		return err
	}
	if _, err := d.admin("-n", namespace, "wait", "--for=condition=Ready", "tm,tpol", "--all", "--timeout", patience.String()); err != nil {
		return err
	}
	entries, err := d.entries()
	d.before = len(entries)
	return err
}

func (d *demo) apply(file string) error {
	text, err := os.ReadFile(filepath.Join(manifests, file))
	if err != nil {
		return err
	}
	// JSON's text is YAML's too, on one line.
	authority, err := json.Marshal(d.authority)
	if err != nil {
		return err
	}
	text = []byte(os.Expand(string(text), func(variable string) string {
		return map[string]string{
			"DEMO_SERVICE_IMAGE": d.images["demo-ledger"],
			"DEMO_TOOL_IMAGE":    d.images["demo-ledgerctl"],
			"DEMO_CA":            string(authority),
		}[variable]
	}))
	_, err = d.as("", string(text), "apply", "-f", "-")
	return err
}

// people gives the agent a kubeconfig with its own token, and on the
// development cluster alice and bob one with a certificate each. On any other
// cluster the administrator impersonates those two.
func (d *demo) people() error {
	token, err := d.admin("-n", namespace, "create", "token", "agent", "--duration", "1h")
	if err != nil {
		return err
	}
	config, err := d.admin("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
	if err != nil {
		return err
	}
	own, err := withToken(config, strings.TrimSpace(token))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.folder, "agent"), own, 0o600); err != nil {
		return err
	}
	if d.state == "" {
		return nil
	}
	for _, name := range []string{"alice", "bob"} {
		text, err := d.program("bin/assent-cluster", "user", name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// withToken replaces the credentials of a kubeconfig by a token.
func withToken(config, token string) ([]byte, error) {
	var c map[string]any
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return nil, err
	}
	users, ok := c["users"].([]any)
	if !ok || len(users) != 1 {
		return nil, errors.New("the kubeconfig has no user")
	}
	user, ok := users[0].(map[string]any)
	if !ok {
		return nil, errors.New("the kubeconfig's user cannot be read")
	}
	user["user"] = map[string]any{"token": token}
	return json.Marshal(c)
}
