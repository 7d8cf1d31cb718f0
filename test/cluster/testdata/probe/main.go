// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is the program of the smoke test's image: a small web server,
// and a client that asks it. The client writes the answer where kubelet picks up
// a container's last words.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve()
	case len(os.Args) == 3 && os.Args[1] == "get":
		err = get(os.Args[2])
	default:
		err = fmt.Errorf("usage: probe serve | probe get URL")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	server := &http.Server{
		Addr:              ":8080",
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "hello from a Pod")
		}),
	}
	return server.ListenAndServe()
}

func get(url string) error {
	response, err := (&http.Client{Timeout: 10 * time.Second}).Get(url) //nolint:gosec // what it is for
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, string(body))
	return os.WriteFile("/dev/termination-log", body, 0o644)
}
