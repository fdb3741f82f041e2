// Command templates makes the load server's templates of a kube-apiserver's list of pods.
//
//	go run ./templates PODS.json ../../data && zstd --rm -19 ../../data/pods.json ../../data/pods.pb
//
// Whatever differs from pod to pod becomes a placeholder of the length that all values of its sort have, the same in
// every pod. The load server looks for the placeholders in JSON and in protobuf, and fills them in.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The placeholders, as bench/src/server/templates.rs knows them. Those that end with a digit are numbered.
const (
	nameSuffix   = "xxxxx"
	templateHash = "zzzzzzzzzz"
	volumeSuffix = "vvvvv"
	version      = "1111111111"
	podAddress   = "10.211.211.211"
	hostAddress  = "10.122.122.122"
	uid          = "00000000-0000-4000-8000-00000000000%d"
	hash         = "%02d%0*d"
	creationTime = "2026-01-01T00:00:00Z"
	otherTime    = "2026-02-02T02:02:0%dZ"
)

var (
	uids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hashes  = regexp.MustCompile(`(@sha256:)?\b([0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})\b`)
	times   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	volumes = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: templates PODS.json FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(source, folder string) error {
	body, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	var raw struct{ Items []json.RawMessage }
	if err := json.Unmarshal(body, &raw); err != nil {
		return fmt.Errorf("%s is no list: %w", source, err)
	}
	pods := make([]string, len(raw.Items))
	for i, item := range raw.Items {
		if pods[i], err = normalised(string(item)); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	text := `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(pods, ",") + "]}"
	var list corev1.PodList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return err
	}
	protobuf, err := list.Marshal()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "pods.json"), []byte(text), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "pods.pb"), protobuf, 0o644)
}

// normalised puts placeholders into a pod. It works on the text, which stays in the server's own order of fields.
func normalised(text string) (string, error) {
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		return "", err
	}
	suffix := strings.TrimPrefix(pod.Name, pod.GenerateName)
	podHash := pod.Labels["pod-template-hash"]
	app := pod.Labels["app.kubernetes.io/name"]
	if len(suffix) != len(nameSuffix) || len(podHash) != len(templateHash) || app == "" {
		return "", fmt.Errorf("%s is no pod of a Deployment", pod.Name)
	}
	created := pod.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z")
	known := strings.NewReplacer(
		// Reads look for the label `app`, which these pods lack.
		`"labels":{"`, `"labels":{"app":"`+app+`","`,
		`"f:labels":{".":{}`, `"f:labels":{".":{},"f:app":{}`,
		pod.Name, pod.GenerateName+nameSuffix,
		`"resourceVersion":"`+pod.ResourceVersion+`"`, `"resourceVersion":"`+version+`"`,
		`"`+pod.Status.PodIP+`"`, `"`+podAddress+`"`,
		`\"`+pod.Status.PodIP+`\"`, `\"`+podAddress+`\"`,
		`"`+pod.Status.HostIP+`"`, `"`+hostAddress+`"`,
	)
	text = strings.ReplaceAll(known.Replace(text), podHash, templateHash)
	text = volumes.ReplaceAllString(text, "kube-api-access-"+volumeSuffix)
	text = numbered(text, uids, func(_ string, n int) string { return fmt.Sprintf(uid, n) })
	text = numbered(text, hashes, func(found string, n int) string {
		if strings.HasPrefix(found, "@") {
			return found // The digest of an image, the same for all of its pods.
		}
		return fmt.Sprintf(hash, len(found), len(found)-2, n)
	})
	return numbered(text, times, func(found string, n int) string {
		if found == created {
			return creationTime
		}
		return fmt.Sprintf(otherTime, n)
	}), nil
}

// numbered replaces what matches; equal matches become equal placeholders.
func numbered(text string, pattern *regexp.Regexp, placeholder func(found string, n int) string) string {
	seen := map[string]string{}
	return pattern.ReplaceAllStringFunc(text, func(found string) string {
		if _, ok := seen[found]; !ok {
			seen[found] = placeholder(found, len(seen))
		}
		return seen[found]
	})
}
