package main

import (
	"fmt"
	"mime"
	"net/http"
	"sync"
	"time"
)

// request is one request that client-go made, and how it was answered.
type request struct {
	at          time.Time
	kind        requestKind
	contentType string
}

type requestKind string

const (
	listing       requestKind = "list"
	streamingList requestKind = "streaming list"
	watching      requestKind = "watch"
)

// requestLog keeps what client-go asked for, so that a run fails if it was not what its mode says: client-go falls back
// from streaming lists to lists, and from protobuf to JSON, without a word.
type requestLog struct {
	next http.RoundTripper

	mu       sync.Mutex
	requests []request
}

// wrap puts the log before a transport. It sees requests and headers; bodies pass untouched.
func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	l.next = next
	return l
}

func (l *requestLog) RoundTrip(httpRequest *http.Request) (*http.Response, error) {
	entry := request{at: time.Now(), kind: kindOf(httpRequest)}
	response, err := l.next.RoundTrip(httpRequest)
	if err != nil {
		return response, err
	}
	// The type may carry parameters, as in `application/vnd.kubernetes.protobuf;stream=watch`.
	if entry.contentType, _, err = mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil {
		entry.contentType = response.Header.Get("Content-Type")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, entry)
	return response, nil
}

func kindOf(httpRequest *http.Request) requestKind {
	query := httpRequest.URL.Query()
	watch, initial := query.Get("watch"), query.Get("sendInitialEvents")
	switch {
	case watch != "true" && watch != "1":
		return listing
	case initial == "true":
		return streamingList
	default:
		return watching
	}
}

// all is every request so far.
func (l *requestLog) all() []request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]request(nil), l.requests...)
}

// firstListingAfter is when the informer first asked for all pods after a given time.
func (l *requestLog) firstListingAfter(start time.Time) (time.Time, bool) {
	for _, entry := range l.all() {
		if entry.kind != watching && !entry.at.Before(start) {
			return entry.at, true
		}
	}
	return time.Time{}, false
}

// checkMode says whether these requests are what the mode promises. In a list mode, pages count as one list.
func checkMode(m mode, requests []request) error {
	expected := listing
	if m.stream {
		expected = streamingList
	}
	listings := 0
	for _, entry := range requests {
		if entry.contentType != m.contentType {
			return fmt.Errorf("a %s was answered as %q, not as %q: is the server able to?", entry.kind, entry.contentType, m.contentType)
		}
		if entry.kind == watching {
			continue
		}
		if entry.kind != expected {
			return fmt.Errorf("client-go asked for a %s where a %s was meant", entry.kind, expected)
		}
		listings++
	}
	if listings == 0 {
		return fmt.Errorf("client-go never asked for a %s", expected)
	}
	return nil
}
