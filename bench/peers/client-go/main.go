// Command client-go is the driver of client-go: the same work as the other drivers, by the same contract (see the README of
// the directory above the peers). It prints one line of JSON; all else goes to standard error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

const usage = `usage:
  client-go informer --server URL --mode MODE --handler keys|decode [--handlers N] --phases PHASES
                     [--events C] [--over O] [--rate R] [--rated-events C]
  client-go queue --producers P --consumers C --items I

MODE is json-list, json-stream, protobuf-list or protobuf-stream, each also with -strip.
PHASES are of sync, relist, events, latency and reads, with commas between. The informer is synced in any case.`

// driverName is what the line of figures calls this driver.
const driverName = "client-go"

func main() {
	line, err := drive(context.Background(), os.Args[1:], os.Stderr)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(line)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client-go driver:", err)
		os.Exit(1)
	}
}

// drive does what the arguments ask for, and returns the line to print.
func drive(ctx context.Context, args []string, stderr io.Writer) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("no scenario is named\n%s", usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprintln(stderr, usage) }
	switch args[0] {
	case "informer":
		options, err := parseInformer(flags, args[1:])
		if err != nil {
			return nil, err
		}
		return runInformer(ctx, options)
	case "queue":
		options, err := parseQueue(flags, args[1:])
		if err != nil {
			return nil, err
		}
		return runQueue(options)
	default:
		return nil, fmt.Errorf("there is no scenario %q\n%s", args[0], usage)
	}
}

// parseFlags parses the arguments, none of which may be left over.
func parseFlags(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not understood\n%s", flags.Arg(0), usage)
	}
	return nil
}

// clientGoVersion is the version of client-go in this program, as the Go toolchain wrote it into the executable.
func clientGoVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/client-go" {
				return module.Version
			}
		}
	}
	return "unknown"
}
