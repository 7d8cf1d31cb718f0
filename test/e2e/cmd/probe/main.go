// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is the tool of the end-to-end tests: it ends, waits or writes
// as its words say.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: probe print|fail|sleep|flood|env|subject|connect|listen VALUE")
		os.Exit(2)
	}
	value := os.Args[2]
	number, _ := strconv.Atoi(value) // 0 where the value is text
	switch os.Args[1] {
	case "print":
		fmt.Println(value)
	case "fail":
		fmt.Fprintln(os.Stderr, "the probe was told to fail")
		os.Exit(number)
	case "sleep":
		time.Sleep(time.Duration(number) * time.Second)
		fmt.Println("slept")
	case "flood":
		fmt.Print(strings.Repeat("x", number))
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "subject":
		fmt.Println(subject(value))
	case "connect":
		fmt.Println(connect(value))
	case "listen":
		fmt.Fprintln(os.Stderr, listen(value))
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "the probe knows no such word")
		os.Exit(2)
	}
}

// subject says whose token a file holds.
func subject(file string) string {
	token, err := os.ReadFile(file)
	if err != nil {
		return "no token"
	}
	_, payload, _ := strings.Cut(string(token), ".")
	payload, _, _ = strings.Cut(payload, ".")
	var claims struct {
		Subject string `json:"sub"`
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return "no JWT"
	}
	return claims.Subject
}

// connect says whether anything answers at an address. A lost packet is not
// taken for a closed network.
func connect(address string) string {
	for range 3 {
		connection, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), "tcp", address)
		if err == nil {
			_ = connection.Close()
			return "connected"
		}
	}
	return "no connection"
}

// listen accepts connections at addresses, separated by commas, and answers
// every HTTP request with 200.
func listen(addresses string) error {
	failed := make(chan error)
	for address := range strings.SplitSeq(addresses, ",") {
		go func() { failed <- serve(address) }()
	}
	return <-failed
}

func serve(address string) error {
	server := &http.Server{Addr: address, ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.RequestURI)
		w.WriteHeader(http.StatusOK)
	})}
	return server.ListenAndServe()
}
