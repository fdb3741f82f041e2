//! The rows that are compared with the peers, and what is to be reached in them.

use crate::configuration::Configuration;
use crate::configuration::Driver::{ClientGo, Watchkeeper};
use crate::figures::Measured;
use crate::plan::{Peer, ours, ours_decode, reads_of_ours};
use crate::results::{Better, Results};

/// How a figure is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    /// In megabytes.
    Bytes,
    /// Bytes too, in kilobytes.
    KiloBytes,
    Microseconds,
    Nanoseconds,
    PerSecond,
}

/// One row of the table of targets.
pub(crate) struct Row {
    pub(crate) title: &'static str,
    /// One word.
    pub(crate) key: &'static str,
    pub(crate) figure: &'static str,
    pub(crate) unit: Unit,
    pub(crate) better: Better,
    pub(crate) ours: Configuration,
    /// How many times better than a peer, in the better of its modes.
    pub(crate) peers: Vec<(Peer, Vec<Configuration>, f64)>,
}

/// What came of a row with one peer.
pub(crate) struct Compared {
    pub(crate) peer: Peer,
    pub(crate) configuration: Configuration,
    pub(crate) theirs: Measured,
    pub(crate) ratio: f64,
    pub(crate) target: f64,
}

impl Row {
    /// Against each peer that there are figures of.
    pub(crate) fn compare(&self, results: &Results) -> Option<(Measured, Vec<Compared>)> {
        let ours = results.measured(&self.ours, self.figure)?;
        let compared = self.peers.iter().filter_map(|(peer, configurations, target)| {
            let (configuration, theirs) = results.best(configurations, self.figure, self.better)?;
            let ratio = self.better.ratio(ours.median, theirs.median);
            Some(Compared { peer: *peer, configuration, theirs, ratio, target: *target })
        });
        Some((ours, compared.collect()))
    }
}

/// The rows that both comparisons have. `quick` has one mode of each peer only.
pub(crate) fn main_rows(pods: u32, decode_pods: u32) -> Vec<Row> {
    let keys = |title, key, figure, unit, better, targets: [f64; 3]| Row {
        title,
        key,
        figure,
        unit,
        better,
        ours: ours(pods),
        peers: Peer::ALL
            .into_iter()
            .zip(targets)
            .map(|(peer, target)| (peer, peer.keys(pods).into(), target))
            .collect(),
    };
    let decode = Row {
        ours: ours_decode(decode_pods),
        peers: Peer::ALL
            .into_iter()
            .zip([1.0, 6.0, 2.5])
            .map(|(peer, target)| (peer, peer.decode(decode_pods).into(), target))
            .collect(),
        ..keys(
            "CPU per event, `decode`, managedFields dropped",
            "event-cpu-decode",
            "events.cpu_us",
            Unit::Microseconds,
            Better::Less,
            [0.0; 3],
        )
    };
    vec![
        keys("time to sync, `keys`", "sync-time", "sync.wall_s", Unit::Seconds, Better::Less, [3.0, 10.0, 10.0]),
        keys(
            "peak resident memory while syncing",
            "sync-peak",
            "sync.rss_peak",
            Unit::Bytes,
            Better::Less,
            [12.0, 12.0, 35.0],
        ),
        keys(
            "resident memory after sync",
            "sync-after",
            "sync.rss_after",
            Unit::Bytes,
            Better::Less,
            [15.0, 15.0, 45.0],
        ),
        keys("CPU per event, `keys`", "event-cpu", "events.cpu_us", Unit::Microseconds, Better::Less, [4.0, 25.0, 9.0]),
        decode,
        keys(
            "events per second at full speed, `keys`",
            "events",
            "events.per_s",
            Unit::PerSecond,
            Better::More,
            [3.0, 25.0, 9.0],
        ),
    ]
}

/// Rows in which ours is to be ahead, by whatever factor.
pub(crate) fn rows_ahead(pods: u32) -> Vec<Row> {
    use Unit::{Microseconds, Nanoseconds};
    let figures = [
        ("latency at 1,000 events/s, p50", "latency.p50_us", Microseconds),
        ("latency at 1,000 events/s, p99", "latency.p99_us", Microseconds),
        ("read: get", "reads.get_ns", Nanoseconds),
        ("read: list of a namespace", "reads.namespace_us", Microseconds),
        ("read: pods of a node, by index", "reads.index_us", Microseconds),
        ("read: label selector", "reads.selector_us", Microseconds),
        ("busy read: get", "reads.busy.get_ns", Nanoseconds),
        ("busy read: list of a namespace", "reads.busy.namespace_us", Microseconds),
        ("busy read: pods of a node, by index", "reads.busy.index_us", Microseconds),
        ("busy read: label selector", "reads.busy.selector_us", Microseconds),
    ];
    let rows = figures.map(|(title, figure, unit)| Row {
        title,
        key: figure,
        figure,
        unit,
        better: Better::Less,
        ours: if figure.starts_with("reads") { reads_of_ours(pods) } else { ours(pods) },
        peers: match figure.starts_with("reads") {
            true => [Peer::ClientGoProtobuf, Peer::KubeRs].map(|peer| (peer, vec![peer.reads()], 1.0)).into(),
            false => Peer::ALL.map(|peer| (peer, peer.keys(pods).into(), 1.0)).into(),
        },
    });
    let queues = [("work queue, 1 producer, 1 consumer", 1), ("work queue, 4 producers, 4 consumers", 4)];
    let queues = queues.map(|(title, threads)| Row {
        title,
        key: "queue.cycle_ns",
        figure: "queue.cycle_ns",
        unit: Nanoseconds,
        better: Better::Less,
        ours: Configuration::queue(Watchkeeper, threads, threads),
        peers: vec![(Peer::ClientGoProtobuf, vec![Configuration::queue(ClientGo, threads, threads)], 1.0)],
    });
    rows.into_iter().chain(queues).collect()
}
