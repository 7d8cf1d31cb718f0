// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command benchtable turns the output of go test -bench into a Markdown table
// of one metric: the part of the name before the last slash becomes the row,
// the part behind it the column.
//
//	go test -run '^$' -bench Pipeline ./snapshot | go run ./hack/benchtable -metric x-jcs
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	metric := flag.String("metric", "x-jcs", "unit of the metric to show")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *metric); err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
}

// table is what was read, in order of appearance.
type table struct {
	rows, columns []string
	cells         map[[2]string]string
}

// run reads benchmark lines and passes every other line on to nobody; a failed
// benchmark run has no table.
func run(in io.Reader, out io.Writer, metric string) error {
	t := table{cells: map[[2]string]string{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") {
			return errors.New("the benchmarks failed")
		}
		t.add(strings.Fields(line), metric)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the benchmarks: %w", err)
	}
	if len(t.rows) == 0 {
		return fmt.Errorf("no benchmark reports %q", metric)
	}
	return t.write(out)
}

// cpuSuffix is what go test appends to names when GOMAXPROCS is not 1.
var cpuSuffix = regexp.MustCompile(`-\d+$`)

// add takes a line apart: name, iterations, then pairs of value and unit.
func (t *table) add(fields []string, metric string) {
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
		return
	}
	name := cpuSuffix.ReplaceAllString(fields[0], "")
	slash := strings.LastIndexByte(name, '/')
	if slash < 0 {
		return
	}
	row, column := name[:slash], name[slash+1:]
	for i := 2; i+1 < len(fields); i += 2 {
		if fields[i+1] != metric {
			continue
		}
		if !slices.Contains(t.rows, row) {
			t.rows = append(t.rows, row)
		}
		if !slices.Contains(t.columns, column) {
			t.columns = append(t.columns, column)
		}
		t.cells[[2]string{row, column}] = fields[i]
	}
}

func (t *table) write(out io.Writer) error {
	var b strings.Builder
	b.WriteString("| | " + strings.Join(t.columns, " | ") + " |\n")
	b.WriteString("|---|" + strings.Repeat("---|", len(t.columns)) + "\n")
	for _, row := range t.rows {
		short := row[strings.IndexByte(row, '/')+1:]
		b.WriteString("| " + short)
		for _, column := range t.columns {
			b.WriteString(" | " + t.cells[[2]string{row, column}])
		}
		b.WriteString(" |\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
