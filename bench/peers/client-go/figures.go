package main

// informerLine is the line that the scenario `informer` prints. What was not asked for is left out.
type informerLine struct {
	Driver   string          `json:"driver"`
	Version  string          `json:"version"`
	Mode     string          `json:"mode"`
	Handler  string          `json:"handler"`
	Handlers int             `json:"handlers"`
	Sync     *syncFigures    `json:"sync,omitempty"`
	Relist   *relistFigures  `json:"relist,omitempty"`
	Events   *eventsFigures  `json:"events,omitempty"`
	Latency  *latencyFigures `json:"latency,omitempty"`
	Reads    *readsFigures   `json:"reads,omitempty"`
	Check    string          `json:"check"`
}

type syncFigures struct {
	WallS    float64 `json:"wall_s"`
	CPUS     float64 `json:"cpu_s"`
	RSSBase  uint64  `json:"rss_base"`
	RSSPeak  uint64  `json:"rss_peak"`
	RSSAfter uint64  `json:"rss_after"`
	// RSSFreed is what is left when Go was then told to collect its garbage and to give back what it can, which it does not
	// do by itself. The phases behind this one begin with that smaller heap.
	RSSFreed uint64 `json:"rss_freed"`
	Objects  int    `json:"objects"`
}

type relistFigures struct {
	WallS float64 `json:"wall_s"`
	// PauseS is the part of the wall time that client-go let pass before it asked again: its backoff, not its work.
	PauseS    float64 `json:"pause_s"`
	CPUS      float64 `json:"cpu_s"`
	RSSBefore uint64  `json:"rss_before"`
	RSSPeak   uint64  `json:"rss_peak"`
	RSSAfter  uint64  `json:"rss_after"`
}

type eventsFigures struct {
	Count int     `json:"count"`
	WallS float64 `json:"wall_s"`
	CPUS  float64 `json:"cpu_s"`
	PerS  float64 `json:"per_s"`
	CPUUs float64 `json:"cpu_us"`
}

type latencyFigures struct {
	Count int     `json:"count"`
	P50Us float64 `json:"p50_us"`
	P99Us float64 `json:"p99_us"`
	MaxUs float64 `json:"max_us"`
	CPUUs float64 `json:"cpu_us"`
}

// readTimes are the means of the four kinds of reads, and how many objects a call found on average.
type readTimes struct {
	GetNs          float64 `json:"get_ns"`
	NamespaceUs    float64 `json:"namespace_us"`
	NamespaceFound float64 `json:"namespace_found"`
	IndexUs        float64 `json:"index_us"`
	IndexFound     float64 `json:"index_found"`
	SelectorUs     float64 `json:"selector_us"`
	SelectorFound  float64 `json:"selector_found"`
}

type readsFigures struct {
	readTimes
	Busy busyReads `json:"busy"`
}

type busyReads struct {
	readTimes
	EventsPerS float64 `json:"events_per_s"`
}
