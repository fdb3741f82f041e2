package main

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"
)

// mode is how pods come to the informer, and what it keeps of them.
type mode struct {
	// contentType is the encoding that is asked for, and that every answer must have.
	contentType string
	// stream asks for streaming lists (WatchList), which are the default of client-go since v0.35.
	stream bool
	// strip drops managedFields before a pod is stored, as the documentation of SetTransform recommends.
	strip bool
}

func parseMode(name string) (mode, error) {
	var m mode
	words, strip := strings.CutSuffix(name, "-strip")
	m.strip = strip
	encoding, listing, _ := strings.Cut(words, "-")
	switch encoding {
	case "json":
		m.contentType = runtime.ContentTypeJSON
	case "protobuf":
		m.contentType = runtime.ContentTypeProtobuf
	}
	if m.contentType == "" || (listing != "list" && listing != "stream") {
		return m, fmt.Errorf("there is no mode %q: try json-list, json-stream, protobuf-list or protobuf-stream, with or without -strip", name)
	}
	m.stream = listing == "stream"
	return m, nil
}

// chooseListing turns streaming lists on or off in client-go. It reads its feature gates once, so this comes first of all.
func (m mode) chooseListing() error {
	if err := os.Setenv("KUBE_FEATURE_"+string(features.WatchListClient), fmt.Sprint(m.stream)); err != nil {
		return err
	}
	if features.FeatureGates().Enabled(features.WatchListClient) != m.stream {
		return fmt.Errorf("client-go does not let its feature WatchListClient be set to %v", m.stream)
	}
	return nil
}

// restConfig is how client-go reaches the server.
func (m mode) restConfig(server string) *rest.Config {
	config := &rest.Config{
		Host: server,
		// The client must not hold back requests.
		QPS: -1,
	}
	config.ContentType = m.contentType
	config.AcceptContentTypes = m.contentType
	if m.contentType == runtime.ContentTypeProtobuf {
		// As the components of Kubernetes do: errors may come as JSON.
		config.AcceptContentTypes += "," + runtime.ContentTypeJSON
	}
	return config
}

// dropManagedFields is the transform of the modes with -strip.
func dropManagedFields(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}
