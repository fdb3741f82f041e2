package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// informerOptions are the arguments of the scenario `informer`.
type informerOptions struct {
	server      string
	modeName    string
	mode        mode
	handlerName string
	look        look
	handlers    int
	phases      []string
	// events is how many come at full speed, ratedEvents how many at rate a second. Both go over the first over pods; 0 means all.
	events, over, rate, ratedEvents int
}

// The phases, in the order in which they are done.
const (
	phaseSync    = "sync"
	phaseRelist  = "relist"
	phaseEvents  = "events"
	phaseLatency = "latency"
	phaseReads   = "reads"
)

var allPhases = []string{phaseSync, phaseRelist, phaseEvents, phaseLatency, phaseReads}

func parseInformer(flags *flag.FlagSet, args []string) (informerOptions, error) {
	var options informerOptions
	var phases string
	flags.StringVar(&options.server, "server", "", "")
	flags.StringVar(&options.modeName, "mode", "", "")
	flags.StringVar(&options.handlerName, "handler", "", "")
	flags.IntVar(&options.handlers, "handlers", 1, "")
	flags.StringVar(&phases, "phases", "", "")
	flags.IntVar(&options.events, "events", 100_000, "")
	flags.IntVar(&options.over, "over", 0, "")
	flags.IntVar(&options.rate, "rate", 1_000, "")
	flags.IntVar(&options.ratedEvents, "rated-events", 5_000, "")
	if err := parseFlags(flags, args); err != nil {
		return options, err
	}
	if options.server == "" {
		return options, fmt.Errorf("--server is missing: the line that load-server prints when it is ready")
	}
	options.server = strings.TrimSuffix(options.server, "/")
	if options.handlers < 1 || options.events < 1 || options.rate < 1 || options.ratedEvents < 1 || options.over < 0 {
		return options, fmt.Errorf("handlers, events, rate and rated-events must each be at least 1, over at least 0")
	}
	var err error
	if options.mode, err = parseMode(options.modeName); err != nil {
		return options, err
	}
	if options.look, err = lookFor(options.handlerName); err != nil {
		return options, err
	}
	options.phases, err = parsePhases(phases)
	return options, err
}

func parsePhases(list string) ([]string, error) {
	var phases []string
	for phase := range strings.SplitSeq(list, ",") {
		if !slices.Contains(allPhases, phase) {
			return nil, fmt.Errorf("there is no phase %q: try some of %s", phase, strings.Join(allPhases, ","))
		}
		phases = append(phases, phase)
	}
	return phases, nil
}

// has says whether a phase is asked for.
func (o informerOptions) has(phase string) bool {
	return slices.Contains(o.phases, phase)
}
