//! Pods: what their containers come to. Counterpart: `printPod`.

use jiff::Timestamp;
use serde_json::Value;

use super::NONE;
use super::age;
use super::subject::Subject;

/// What a pod's containers say together.
#[derive(Debug, Default)]
struct Summary {
    status: String,
    containers: usize,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// `1/2`: how many containers are ready, and how many there are.
pub(super) fn ready(pod: Subject<'_>) -> Value {
    let summary = Summary::of(pod);
    format!("{}/{}", summary.ready, summary.containers).into()
}

/// `Running`, `Init:0/1`, `CrashLoopBackOff`, ...
pub(super) fn status(pod: Subject<'_>) -> Value {
    Summary::of(pod).status.into()
}

/// `4`, or `4 (5m ago)`.
pub(super) fn restarts(pod: Subject<'_>) -> Value {
    let Summary { restarts, last_restart, .. } = Summary::of(pod);
    match last_restart {
        Some(last) if restarts != 0 => format!("{restarts} ({} ago)", age::human(pod.now().duration_since(last))),
        _ => restarts.to_string(),
    }
    .into()
}

/// The first address. The older field counts where both are set and differ.
pub(super) fn ip(pod: Subject<'_>) -> Value {
    match pod.first_text(&["/status/podIP", "/status/podIPs/0/ip"]) {
        "" => NONE.into(),
        ip => ip.into(),
    }
}

/// `1/2`: how many readiness gates are open, and how many there are.
pub(super) fn readiness_gates(pod: Subject<'_>) -> Value {
    let gates = pod.list("/spec/readinessGates");
    let count = gates.len();
    if count == 0 {
        return NONE.into();
    }
    let open = gates.filter(|gate| is_condition_true(pod, gate.text("/conditionType"))).count();
    format!("{open}/{count}").into()
}

/// What a row says of a pod that will not run again.
pub(super) fn conditions(pod: Subject<'_>) -> Option<Value> {
    let phase = pod.text("/status/phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(serde_json::json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

impl Summary {
    fn of(pod: Subject<'_>) -> Self {
        let restartable = pod.list("/spec/initContainers").filter(is_restartable).count();
        let mut summary = Self {
            status: pod.first_text(&["/status/reason", "/status/phase"]).to_owned(),
            containers: pod.list("/spec/containers").len() + restartable,
            ..Self::default()
        };
        let is_gated = |c: Subject<'_>| c.text("/type") == "PodScheduled" && c.text("/reason") == "SchedulingGated";
        if pod.list("/status/conditions").any(is_gated) {
            summary.status = "SchedulingGated".to_owned();
        }
        let sidecars = summary.add_init_containers(pod);
        if let Some((restarts, last_restart)) = sidecars {
            (summary.restarts, summary.last_restart) = (restarts, last_restart);
            summary.add_containers(pod);
        }
        if pod.is_deleting() {
            if pod.text("/status/reason") == "NodeLost" {
                summary.status = "Unknown".to_owned();
            } else if !matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
                summary.status = "Terminating".to_owned();
            }
        }
        summary
    }

    /// The restarts of those init containers that go on running, and the last of these; none, as long as the others have
    /// not all ended well.
    fn add_init_containers(&mut self, pod: Subject<'_>) -> Option<(i64, Option<Timestamp>)> {
        let (mut sidecar_restarts, mut last_sidecar_restart) = (0_i64, None);
        let mut initializing = false;
        for (i, status) in pod.list("/status/initContainerStatuses").enumerate() {
            let count = status.integer("/restartCount");
            self.restarts = self.restarts.saturating_add(count);
            self.last_restart = self.last_restart.max(last_end(status));
            // Of containers with the same name the last counts.
            let container = pod.list("/spec/initContainers").rev().find(|c| c.text("/name") == status.text("/name"));
            let is_sidecar = container.as_ref().is_some_and(is_restartable);
            if is_sidecar {
                sidecar_restarts = sidecar_restarts.saturating_add(count);
                last_sidecar_restart = last_sidecar_restart.max(last_end(status));
            }
            let ended = status.part("/state/terminated");
            if ended.is_some_and(|ended| ended.integer("/exitCode") == 0) {
                continue;
            }
            if is_sidecar && status.is_true("/started") {
                self.ready += usize::from(status.is_true("/ready"));
                continue;
            }
            let waits = status.text("/state/waiting/reason");
            self.status = match ended {
                Some(ended) => format!("Init:{}", end(ended)),
                None if !matches!(waits, "" | "PodInitializing") => format!("Init:{waits}"),
                None => format!("Init:{i}/{}", pod.list("/spec/initContainers").len()),
            };
            initializing = true;
            break;
        }
        (!initializing || is_condition_true(pod, "Initialized")).then_some((sidecar_restarts, last_sidecar_restart))
    }

    fn add_containers(&mut self, pod: Subject<'_>) {
        let (mut is_running, mut error) = (false, None);
        for status in pod.list("/status/containerStatuses").rev() {
            self.restarts = self.restarts.saturating_add(status.integer("/restartCount"));
            self.last_restart = self.last_restart.max(last_end(status));
            let waits = status.text("/state/waiting/reason");
            if !waits.is_empty() {
                self.status = waits.to_owned();
            } else if let Some(ended) = status.part("/state/terminated") {
                self.status = end(ended);
                if ended.integer("/exitCode") != 0 {
                    error = Some(self.status.clone());
                }
            } else if status.is_true("/ready") && status.at("/state/running").is_some() {
                is_running = true;
                self.ready += 1;
            }
        }
        // One container has ended well: the others say how the pod is.
        if self.status == "Completed" {
            if is_running && pod.list("/status/conditions").any(|c| is_true(c, "Ready")) {
                self.status = "Running".to_owned();
            } else if let Some(error) = error {
                self.status = error;
            } else if is_running {
                self.status = "NotReady".to_owned();
            }
        }
    }
}

/// How a container ended: its reason, its signal or its exit code.
fn end(ended: Subject<'_>) -> String {
    match (ended.text("/reason"), ended.integer("/signal")) {
        ("", 0) => format!("ExitCode:{}", ended.integer("/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// When a container ended the last time before it was started again.
fn last_end(status: Subject<'_>) -> Option<Timestamp> {
    status.given("/lastState/terminated/finishedAt").and_then(age::moment)
}

/// Whether an init container goes on running beside the others.
fn is_restartable(container: &Subject<'_>) -> bool {
    container.text("/restartPolicy") == "Always"
}

/// Whether the first condition of a type is true.
fn is_condition_true(pod: Subject<'_>, kind: &str) -> bool {
    pod.condition("/status/conditions", kind).is_some_and(|condition| is_true(condition, kind))
}

fn is_true(condition: Subject<'_>, kind: &str) -> bool {
    condition.text("/type") == kind && condition.text("/status") == "True"
}
