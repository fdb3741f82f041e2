package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestModesAreWhatTheirNamesSay(t *testing.T) {
	for name, expected := range map[string]mode{
		"json-list":           {contentType: runtime.ContentTypeJSON},
		"json-stream-strip":   {contentType: runtime.ContentTypeJSON, stream: true, strip: true},
		"protobuf-list-strip": {contentType: runtime.ContentTypeProtobuf, strip: true},
		"protobuf-stream":     {contentType: runtime.ContentTypeProtobuf, stream: true},
	} {
		if actual, err := parseMode(name); err != nil || actual != expected {
			t.Errorf("%s is %+v, %v", name, actual, err)
		}
	}
	for _, name := range []string{"", "json", "list", "cbor-list", "json-pages", "json-strip", "json-list-strip-strip"} {
		if actual, err := parseMode(name); err == nil {
			t.Errorf("%q was taken for %+v", name, actual)
		}
	}
}

func TestRequestsThatAreNotOfTheModeAreFound(t *testing.T) {
	const json, protobuf = runtime.ContentTypeJSON, runtime.ContentTypeProtobuf
	list := mode{contentType: json}
	stream := mode{contentType: protobuf, stream: true}
	for _, test := range []struct {
		about    string
		mode     mode
		requests []request
		good     bool
	}{
		{"a list and a watch", list, []request{{kind: listing, contentType: json}, {kind: watching, contentType: json}}, true},
		{"a streaming list", stream, []request{{kind: streamingList, contentType: protobuf}}, true},
		{"a fall back to a list", stream, []request{{kind: streamingList, contentType: protobuf}, {kind: listing, contentType: protobuf}}, false},
		{"a fall back to JSON", stream, []request{{kind: streamingList, contentType: json}}, false},
		{"a watch in JSON", stream, []request{{kind: streamingList, contentType: protobuf}, {kind: watching, contentType: json}}, false},
		{"a streaming list in place of a list", list, []request{{kind: streamingList, contentType: json}}, false},
		{"no list at all", list, []request{{kind: watching, contentType: json}}, false},
	} {
		if err := checkMode(test.mode, test.requests); (err == nil) != test.good {
			t.Errorf("%s: %v", test.about, err)
		}
	}
}

func TestTheLogSeesWhatIsAskedAndAnswered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	}))
	defer server.Close()
	log := &requestLog{}
	client := http.Client{Transport: log.wrap(http.DefaultTransport)}
	start := time.Now()
	for _, query := range []string{"?watch=true&resourceVersion=1", "?watch=true&sendInitialEvents=true", "?limit=500"} {
		response, err := client.Get(server.URL + query)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	all := log.all()
	for i, kind := range []requestKind{watching, streamingList, listing} {
		if all[i].kind != kind || all[i].contentType != runtime.ContentTypeProtobuf {
			t.Errorf("request %d is %+v, not a %s", i, all[i], kind)
		}
	}
	if at, found := log.firstListingAfter(start); !found || at != all[1].at {
		t.Errorf("the first listing was at %v, not at %v", at, all[1].at)
	}
	if at, found := log.firstListingAfter(time.Now()); found {
		t.Errorf("a listing is found at %v, where there is none", at)
	}
}
