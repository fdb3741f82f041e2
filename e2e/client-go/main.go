// Command client-go uses a Kubernetes API as controllers and tools do, with client-go itself, and checks what comes back.
// It prints one line for each check, and ends with 1 if one failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// checks are all there are, in the order in which they are reported.
var checks = slices.Concat(
	objectChecks, informerChecks, customChecks, leaderChecks, eventChecks, applyChecks, patchChecks, scaleChecks,
	deletionChecks, waitChecks, discoveryChecks, reviewChecks,
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the server")
	controllers := flag.Bool("controllers", true, "dependents are collected, and deleted namespaces emptied")
	contentType := flag.String("content-type", "", "how bodies are written: client-go's choice, or application/json")
	only := flag.String("only", "", "run only the checks whose name contains this")
	mirrored := flag.String("mirror", "", "keep informers of this namespace until the standard input ends, and compare them then")
	verbose := flag.Bool("verbose", false, "show what client-go logs")
	flag.Parse()
	if !*verbose {
		klog.SetLogger(logr.Discard())
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	// Without this word, client-go writes built-in kinds as protobuf.
	config.ContentType = *contentType
	// A test may ask as often as it likes.
	config.QPS = -1

	if *mirrored != "" {
		if !mirror(config, *mirrored) {
			os.Exit(1)
		}
		return
	}
	chosen := slices.DeleteFunc(slices.Clone(checks), func(check check) bool { return !strings.Contains(check.name, *only) })
	if !run(context.Background(), config, *controllers, chosen) {
		os.Exit(1)
	}
}
