package main

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// atOnce is how many checks run beside each other: most of them wait, most of the time.
	atOnce = 8
	// patience is how long one check may take, and how long it waits for what must come.
	patience = 30 * time.Second
)

// A check is one thing that clients rely on.
type check struct {
	name string
	run  func(*cluster)
	// needsControllers says that nothing of it is true without garbage collection.
	needsControllers bool
}

// A cluster is what one check works with: clients, and a namespace of its own.
type cluster struct {
	context.Context
	config      *rest.Config
	typed       kubernetes.Interface
	dynamic     dynamic.Interface
	metadata    metadata.Interface
	namespace   string
	controllers bool
}

// run reports all checks in their order, and whether none failed.
func run(ctx context.Context, config *rest.Config, controllers bool, checks []check) bool {
	lines := make([]chan string, len(checks))
	slots := make(chan struct{}, atOnce)
	for i, check := range checks {
		lines[i] = make(chan string, 1)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if check.needsControllers && !controllers {
				lines[i] <- fmt.Sprintf("skipped %s: there are no controllers", check.name)
			} else if problem := attempt(ctx, config, controllers, check); problem != "" {
				lines[i] <- fmt.Sprintf("FAILED %s: %s", check.name, problem)
			} else {
				lines[i] <- "ok " + check.name
			}
		}()
	}
	passed := true
	for _, line := range lines {
		text := <-line
		fmt.Println(text)
		passed = passed && !strings.HasPrefix(text, "FAILED")
	}
	return passed
}

// attempt returns what went wrong, if something did.
func attempt(ctx context.Context, config *rest.Config, controllers bool, check check) (problem string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		switch caught := recover().(type) {
		case nil:
		case failure:
			problem = string(caught)
		default:
			problem = fmt.Sprintf("panic: %v", caught)
		}
	}()
	c := &cluster{
		Context:     ctx,
		config:      config,
		typed:       must(kubernetes.NewForConfig(config)),
		dynamic:     must(dynamic.NewForConfig(config)),
		metadata:    must(metadata.NewForConfig(config)),
		controllers: controllers,
	}
	prefix := "e2e-" + strings.ReplaceAll(check.name, "/", "-") + "-"
	made := must(c.typed.CoreV1().Namespaces().Create(c, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix},
	}, metav1.CreateOptions{}))
	c.namespace = made.Name
	defer removeNamespace(config, controllers, c.namespace)
	check.run(c)
	return ""
}

// removeNamespace cleans up, also behind a check whose time is over. It is no check itself.
func removeNamespace(config *rest.Config, controllers bool, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	namespaces := must(kubernetes.NewForConfig(config)).CoreV1().Namespaces()
	_ = namespaces.Delete(ctx, name, metav1.DeleteOptions{})
	if !controllers {
		_, _ = namespaces.Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{})
	}
}

// A failure ends a check. It is thrown, so that a check reads as the story that it is.
type failure string

func fail(format string, arguments ...any) {
	// The first caller out of this file.
	where := ""
	for depth := 1; ; depth++ {
		_, file, line, known := runtime.Caller(depth)
		if !known {
			break
		}
		if base := filepath.Base(file); base != "check.go" {
			where = fmt.Sprintf("%s:%d: ", base, line)
			break
		}
	}
	panic(failure(where + fmt.Sprintf(format, arguments...)))
}

// must is the value, if there was no error.
func must[T any](value T, err error) T {
	if err != nil {
		fail("%v", err)
	}
	return value
}

func ok(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// equal compares in depth.
func equal[T any](what string, got, wanted T) {
	if !reflect.DeepEqual(got, wanted) {
		fail("%s is %v, not %v", what, got, wanted)
	}
}

// refused wants an error of a certain kind, whose text contains some words.
func refused(err error, kind func(error) bool, words ...string) {
	if err == nil {
		fail("there should have been an error")
	}
	if !kind(err) {
		fail("another error: %v", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			fail("the error %q does not say %q", err, word)
		}
	}
}

// eventually waits until something holds.
func (c *cluster) eventually(what string, holds func() bool) {
	err := wait.PollUntilContextCancel(c, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return holds(), nil
	})
	if err != nil {
		fail("%s: it did not happen within %v", what, patience)
	}
}

// gone wants that an object is not found any more, soon.
func (c *cluster) gone(what string, get func() error) {
	c.eventually(what+" is gone", func() bool { return isNotFound(get()) })
}

// A logbook keeps what happened, in its order.
type logbook struct {
	mutex sync.Mutex
	lines []string
}

func (l *logbook) add(format string, arguments ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, arguments...))
}

func (l *logbook) all() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]string(nil), l.lines...)
}

// tells waits until the lines are these.
func (c *cluster) tells(book *logbook, wanted ...string) {
	err := wait.PollUntilContextCancel(c, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return reflect.DeepEqual(book.all(), wanted), nil
	})
	if err != nil {
		fail("it happened: %q; wanted: %q", book.all(), wanted)
	}
}
