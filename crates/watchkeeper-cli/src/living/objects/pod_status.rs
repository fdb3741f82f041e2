//! How a pod is, from the first container to the last.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::hash;
use crate::living::views::{Condition, PodSpec};

/// The status of a pod, as far as it is looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::living) struct PodStatus {
    pub(in crate::living) phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::living) start_time: Option<Timestamp>,
    #[serde(rename = "hostIP", skip_serializing_if = "String::is_empty")]
    pub(in crate::living) host_ip: String,
    #[serde(rename = "podIP", skip_serializing_if = "String::is_empty")]
    pub(in crate::living) pod_ip: String,
    #[serde(rename = "podIPs", skip_serializing_if = "Vec::is_empty")]
    pub(in crate::living) pod_ips: Vec<Ip>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::living) qos_class: String,
    pub(in crate::living) conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::living) container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::living) struct Ip {
    ip: String,
}

/// How a container is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::living) struct ContainerStatus {
    pub(in crate::living) name: String,
    pub(in crate::living) image: String,
    #[serde(rename = "imageID")]
    pub(in crate::living) image_id: String,
    #[serde(rename = "containerID", skip_serializing_if = "String::is_empty")]
    pub(in crate::living) container_id: String,
    pub(in crate::living) ready: bool,
    pub(in crate::living) started: bool,
    pub(in crate::living) restart_count: u32,
    pub(in crate::living) state: State,
    pub(in crate::living) last_state: State,
}

/// What a container does; at most one of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::living) struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::living) running: Option<Running>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::living) waiting: Option<Waiting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::living) terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::living) struct Running {
    pub(in crate::living) started_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::living) struct Waiting {
    pub(in crate::living) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::living) message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::living) struct Terminated {
    pub(in crate::living) exit_code: i32,
    pub(in crate::living) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::living) started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::living) finished_at: Option<Timestamp>,
}

impl PodStatus {
    /// The pod has come to its node, which fetches the images.
    pub(in crate::living) fn creating(spec: &PodSpec, host_ip: &str, now: Timestamp) -> Self {
        let container = |container: &crate::living::views::Container| ContainerStatus {
            name: container.name.clone(),
            image: container.image.clone(),
            state: State {
                waiting: Some(Waiting { reason: "ContainerCreating".to_owned(), ..Waiting::default() }),
                ..State::default()
            },
            ..ContainerStatus::default()
        };
        let mut status = Self {
            phase: "Pending".to_owned(),
            start_time: Some(now),
            host_ip: host_ip.to_owned(),
            qos_class: "Burstable".to_owned(),
            container_statuses: spec.containers.iter().map(container).collect(),
            ..Self::default()
        };
        status.judge(true, now);
        status
    }

    /// All containers run; they may not be ready yet.
    pub(in crate::living) fn running(mut self, uid: &str, ip: &str, now: Timestamp) -> Self {
        self.phase = "Running".to_owned();
        self.pod_ip = ip.to_owned();
        self.pod_ips = vec![Ip { ip: ip.to_owned() }];
        for container in &mut self.container_statuses {
            container.run(uid, now);
        }
        self.judge(true, now);
        self
    }

    /// All containers that run are ready.
    pub(in crate::living) fn ready(mut self, now: Timestamp) -> Self {
        for container in &mut self.container_statuses {
            container.ready = container.state.running.is_some();
        }
        self.judge(true, now);
        self
    }

    /// The first container has failed, and waits to be started again.
    pub(in crate::living) fn crashed(mut self, exit_code: i32, now: Timestamp) -> Self {
        if let Some(container) = self.container_statuses.first_mut() {
            let started_at = container.state.running.take().and_then(|running| running.started_at);
            let reason = if exit_code == 137 { "OOMKilled" } else { "Error" }.to_owned();
            let terminated = Terminated { exit_code, reason, started_at, finished_at: Some(now) };
            container.last_state = State { terminated: Some(terminated), ..State::default() };
            let message = format!("back-off restarting failed container={}", container.name);
            let waiting = Waiting { reason: "CrashLoopBackOff".to_owned(), message };
            container.state = State { waiting: Some(waiting), ..State::default() };
            container.ready = false;
            container.started = false;
        }
        self.judge(true, now);
        self
    }

    /// Containers that had failed run again.
    pub(in crate::living) fn restarted(mut self, uid: &str, now: Timestamp) -> Self {
        for container in self.container_statuses.iter_mut().filter(|container| container.state.running.is_none()) {
            container.restart_count = container.restart_count.saturating_add(1);
            container.run(uid, now);
        }
        self.judge(true, now);
        self
    }

    /// It has done what it was to do.
    pub(in crate::living) fn succeeded(mut self, now: Timestamp) -> Self {
        self.phase = "Succeeded".to_owned();
        for container in &mut self.container_statuses {
            let started_at = container.state.running.take().and_then(|running| running.started_at);
            let reason = "Completed".to_owned();
            let terminated = Terminated { exit_code: 0, reason, started_at, finished_at: Some(now) };
            container.state = State { terminated: Some(terminated), ..State::default() };
            container.ready = false;
            container.started = false;
        }
        self.judge(true, now);
        self
    }

    /// Nothing is heard of its node.
    pub(in crate::living) fn out_of_reach(mut self, now: Timestamp) -> Self {
        self.judge(false, now);
        self
    }

    /// There is no node for it.
    pub(in crate::living) fn unschedulable(mut self, message: &str, now: Timestamp) -> Self {
        self.phase = "Pending".to_owned();
        self.condition("PodScheduled", "False", "Unschedulable", message, now);
        self
    }

    /// It answers requests.
    pub(in crate::living) fn is_ready(&self) -> bool {
        self.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True")
    }

    /// What the conditions are, given the containers, and whether anything is heard of the node.
    fn judge(&mut self, node_answers: bool, now: Timestamp) {
        let is_over = self.phase == "Succeeded";
        let runs = self.phase == "Running" || is_over;
        let containers_ready = self.phase == "Running" && self.container_statuses.iter().all(|c| c.ready);
        let is_ready = containers_ready && node_answers;
        let truth = |is_true: bool| if is_true { "True" } else { "False" };
        let unready = match (is_over, node_answers) {
            (true, _) => "PodCompleted",
            (false, true) => "ContainersNotReady",
            (false, false) => "NodeNotReady",
        };
        let because = |is_true: bool| if is_true { "" } else { unready };
        self.condition("PodReadyToStartContainers", truth(runs && !is_over), "", "", now);
        self.condition("Initialized", "True", if is_over { "PodCompleted" } else { "" }, "", now);
        self.condition("Ready", truth(is_ready), because(is_ready), "", now);
        self.condition("ContainersReady", truth(containers_ready), because(containers_ready), "", now);
        self.condition("PodScheduled", "True", "", "", now);
    }

    fn condition(&mut self, of: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
        let known = self.conditions.iter().position(|condition| condition.r#type == of);
        let unchanged = known.map(|i| &self.conditions[i]).filter(|condition| condition.status == status);
        let since = unchanged.and_then(|condition| condition.last_transition_time).unwrap_or(now);
        let condition = Condition {
            r#type: of.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(since),
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Condition::default()
        };
        match known {
            Some(i) => self.conditions[i] = condition,
            None => self.conditions.push(condition),
        }
    }
}

impl ContainerStatus {
    fn run(&mut self, pod_uid: &str, now: Timestamp) {
        self.state = State { running: Some(Running { started_at: Some(now) }), ..State::default() };
        self.ready = false;
        self.started = true;
        self.image_id = format!("{}@sha256:{}", repository(&self.image), digest(&self.image));
        let life = format!("{pod_uid}/{}/{}", self.name, self.restart_count);
        self.container_id = format!("containerd://{}", digest(&life));
    }
}

/// How long a container that has failed so often waits.
pub(in crate::living) fn backoff(restarts: u32) -> Duration {
    Duration::from_secs((5_u64 << restarts.min(5)).min(60))
}

fn repository(image: &str) -> &str {
    image.rsplit_once(':').map_or(image, |(repository, _)| repository)
}

/// 64 hexadecimal digits.
fn digest(text: &str) -> String {
    let part = |salt: u64| hash(&format!("{salt}{text}"));
    (0..4).map(|salt| format!("{:016x}", part(salt))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::living::views::Container;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn a_container_that_fails_waits_runs_again_and_is_counted() {
        let container = Container { name: "web".to_owned(), image: "shop/web:1.0.0".to_owned() };
        let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
        let status = PodStatus::creating(&spec, "10.0.0.1", at(1));
        assert!(!status.is_ready() && status.phase == "Pending");
        let status = status.running("uid", "10.1.0.1", at(2));
        assert!(!status.is_ready() && status.phase == "Running");
        let status = status.ready(at(3));
        assert!(status.is_ready());
        let status = status.crashed(1, at(4));
        assert!(!status.is_ready());
        let main = &status.container_statuses[0];
        assert_eq!(main.state.waiting.as_ref().map(|waiting| waiting.reason.as_str()), Some("CrashLoopBackOff"));
        assert_eq!(main.last_state.terminated.as_ref().and_then(|last| last.finished_at), Some(at(4)));
        let status = status.restarted("uid", at(9)).ready(at(10));
        assert!(status.is_ready());
        assert_eq!(status.container_statuses[0].restart_count, 1);
        let away = status.clone().out_of_reach(at(11));
        assert!(!away.is_ready() && away.container_statuses[0].ready);
        assert!(away.ready(at(12)).is_ready());
    }

    #[test]
    fn what_fails_often_waits_longer_but_not_for_ever() {
        assert_eq!([0, 1, 2, 9, u32::MAX].map(|n| backoff(n).as_secs()), [5, 10, 20, 60, 60]);
    }
}
