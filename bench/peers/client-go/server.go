package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// loadServer is the control side of the load server.
type loadServer struct {
	url string
}

// state is how many pods the server has, and the digest of them all.
type state struct {
	Objects int    `json:"objects"`
	Digest  string `json:"digest"`
}

// versions are the first and the last version of a run of events.
type versions struct {
	first, last uint64
}

// readKey is a pod to read: its name, and what other pods share with it.
type readKey struct {
	namespace, name, node, app string
}

func (s loadServer) state(ctx context.Context) (state, error) {
	var answer state
	return answer, s.callJSON(ctx, http.MethodGet, "/control/digest", &answer)
}

// events asks for count events over the first pods, rate a second, or as fast as they are taken if rate is 0.
func (s loadServer) events(ctx context.Context, count, over, rate int) (versions, error) {
	var answer struct{ First, Last string }
	path := fmt.Sprintf("/control/events?count=%d&over=%d&rate=%d", count, over, rate)
	if err := s.callJSON(ctx, http.MethodPost, path, &answer); err != nil {
		return versions{}, err
	}
	first, err := parseVersion(answer.First)
	if err != nil {
		return versions{}, err
	}
	last, err := parseVersion(answer.Last)
	if err == nil && last-first+1 != uint64(count) {
		err = fmt.Errorf("%s answered with versions %d to %d, which are not %d", path, first, last, count)
	}
	return versions{first: first, last: last}, err
}

// expire ends every watch with a 410, and returns the version of the event that comes when a watch is live again.
func (s loadServer) expire(ctx context.Context) (uint64, error) {
	var answer struct{ Marker string }
	if err := s.callJSON(ctx, http.MethodPost, "/control/expire", &answer); err != nil {
		return 0, err
	}
	return parseVersion(answer.Marker)
}

// sent is when the server wrote each of these events, in nanoseconds since 1970.
func (s loadServer) sent(ctx context.Context, events versions) ([]int64, error) {
	path := fmt.Sprintf("/control/sent?first=%d&last=%d", events.first, events.last)
	body, err := s.call(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	count := int(events.last - events.first + 1)
	if len(body) != 8*count {
		return nil, fmt.Errorf("%s answered with %d bytes, not with 8 for each of %d events", path, len(body), count)
	}
	times := make([]int64, count)
	for i := range times {
		times[i] = int64(binary.LittleEndian.Uint64(body[8*i:]))
	}
	return times, nil
}

// keys are pods spread over the list.
func (s loadServer) keys(ctx context.Context, count int) ([]readKey, error) {
	path := fmt.Sprintf("/control/keys?count=%d", count)
	body, err := s.call(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	keys, err := parseKeys(string(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// parseKeys reads lines of the form `namespace/name node app`.
func parseKeys(lines string) ([]readKey, error) {
	var keys []readKey
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("a line is not `namespace/name node app`: %q", line)
		}
		namespace, name, found := strings.Cut(words[0], "/")
		if !found {
			return nil, fmt.Errorf("a key is not `namespace/name`: %q", words[0])
		}
		keys = append(keys, readKey{namespace: namespace, name: name, node: words[1], app: words[2]})
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there are no keys")
	}
	return keys, nil
}

func (s loadServer) callJSON(ctx context.Context, method, path string, answer any) error {
	body, err := s.call(ctx, method, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s answered with what is not understood, %q: %w", path, body, err)
	}
	return nil
}

func (s loadServer) call(ctx context.Context, method, path string) ([]byte, error) {
	httpRequest, err := http.NewRequestWithContext(ctx, method, s.url+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(httpRequest)
	if err != nil {
		return nil, fmt.Errorf("the load server cannot be reached: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s broke off: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s was answered with %s: %s", path, response.Status, body)
	}
	return body, nil
}

// parseVersion reads a resource version, which the load server writes as a decimal number.
func parseVersion(version string) (uint64, error) {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the version %q is not a decimal number", version)
	}
	return number, nil
}
