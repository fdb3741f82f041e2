//! What runs in a comparison.

use crate::configuration::Driver::{ClientGo, KubeRs, Watchkeeper};
use crate::configuration::{Configuration, Driver, Task};

/// How many pods most rows are about.
pub(crate) const PODS: u32 = 100_000;
pub(crate) const MOST_PODS: u32 = 1_000_000;
/// What syncs slowest takes half of a second for a thousand: all of it has to be done in two minutes.
pub(crate) const QUICK_PODS: u32 = 10_000;
/// What it costs to decode an event does not depend on the number of pods, but to sync them takes time.
pub(crate) const DECODE_PODS: u32 = 20_000;
pub(crate) const QUICK_DECODE_PODS: u32 = 2_000;
/// Sizes at which growth is looked at.
pub(crate) const SIZES: [u32; 4] = [1_000, 10_000, PODS, MOST_PODS];

/// The modes of a peer, and one of each for what need not be run in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    ClientGoProtobuf,
    ClientGoJson,
    KubeRs,
}

impl Peer {
    pub(crate) const ALL: [Self; 3] = [Self::ClientGoProtobuf, Self::ClientGoJson, Self::KubeRs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClientGoProtobuf => "client-go protobuf",
            Self::ClientGoJson => "client-go JSON",
            Self::KubeRs => "kube-rs",
        }
    }

    /// One word.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::ClientGoProtobuf => "client-go-protobuf",
            Self::ClientGoJson => "client-go-json",
            Self::KubeRs => "kube-rs",
        }
    }

    pub(crate) fn driver(self) -> Driver {
        match self {
            Self::ClientGoProtobuf | Self::ClientGoJson => ClientGo,
            Self::KubeRs => KubeRs,
        }
    }

    fn modes(self) -> [&'static str; 2] {
        match self {
            Self::ClientGoProtobuf => ["protobuf-list", "protobuf-stream"],
            Self::ClientGoJson => ["json-list", "json-stream"],
            Self::KubeRs => ["list", "stream"],
        }
    }

    fn stripped_modes(self) -> [&'static str; 2] {
        match self {
            Self::ClientGoProtobuf => ["protobuf-list-strip", "protobuf-stream-strip"],
            Self::ClientGoJson => ["json-list-strip", "json-stream-strip"],
            Self::KubeRs => ["list-strip", "stream-strip"],
        }
    }

    /// The handler `keys`, managedFields kept.
    pub(crate) fn keys(self, pods: u32) -> [Configuration; 2] {
        self.modes().map(|mode| Configuration::informer(self.driver(), mode, "keys", 1, pods))
    }

    /// The handler `decode`, managedFields dropped.
    pub(crate) fn decode(self, pods: u32) -> [Configuration; 2] {
        self.stripped_modes().map(|mode| Configuration::informer(self.driver(), mode, "decode", 1, pods))
    }

    /// Reads, which do not depend on how the objects came.
    pub(crate) fn reads(self) -> Configuration {
        Configuration::reads(self.driver(), self.modes()[0], PODS)
    }

    /// How many events are enough for the CPU time of one. The slow ones would take minutes for more.
    fn events(self) -> u32 {
        match self {
            Self::ClientGoProtobuf => 100_000,
            Self::ClientGoJson => 5_000,
            Self::KubeRs => 20_000,
        }
    }
}

/// Ours, as it is by default.
pub(crate) const fn ours(pods: u32) -> Configuration {
    Configuration::informer(Watchkeeper, "packed", "keys", 1, pods)
}

/// Ours, each pod decoded for each event, managedFields dropped.
pub(crate) const fn ours_decode(pods: u32) -> Configuration {
    Configuration::informer(Watchkeeper, "packed-strip", "decode", 1, pods)
}

/// Ours with an index by a field too.
pub(crate) const fn reads_of_ours(pods: u32) -> Configuration {
    Configuration::reads(Watchkeeper, "packed", pods)
}

pub(crate) const OURS_TEN_HANDLERS: Configuration = Configuration::informer(Watchkeeper, "packed", "keys", 10, PODS);

/// Producers and consumers of queues.
pub(crate) const QUEUES: [(u32, u32); 2] = [(1, 1), (4, 4)];

/// All that goes into RESULTS.md.
pub(crate) fn full() -> Vec<Task> {
    const ALL_PHASES: &str = "sync,relist,events,latency";
    let task = |configuration, phases, count| Task { configuration, phases, count };
    let mut tasks = vec![
        task(ours(PODS), ALL_PHASES, 100_000),
        task(ours_decode(DECODE_PODS), "sync,events", 100_000),
        task(OURS_TEN_HANDLERS, "sync,events", 100_000),
    ];
    let more_of_ours = [("packed", "decode"), ("packed", "seven"), ("raw", "keys"), ("decoded", "keys")];
    tasks.extend(more_of_ours.map(|(mode, handler)| {
        task(Configuration::informer(Watchkeeper, mode, handler, 1, DECODE_PODS), "sync,events", 50_000)
    }));
    for peer in Peer::ALL {
        let events = peer.events();
        // Its first mode is the faster one, but for memory.
        let [list, stream] = peer.keys(PODS);
        tasks.extend([task(list, "sync,events,latency", events), task(stream, "sync,events", events)]);
        tasks.extend(peer.decode(DECODE_PODS).map(|one| task(one, "sync,events", events)));
        let ten = Configuration::informer(peer.driver(), peer.modes()[0], "keys", 10, DECODE_PODS);
        tasks.push(task(ten, "sync,events", events));
    }
    for size in SIZES.into_iter().filter(|size| *size != PODS) {
        tasks.push(task(ours(size), "sync,relist,events", 100_000));
        if size < PODS {
            tasks.extend(Peer::ALL.map(|peer| task(peer.keys(size)[0], "sync,relist,events", peer.events())));
        }
    }
    tasks.extend(SIZES.map(|size| task(reads_of_ours(size), "sync,events,reads", 100_000)));
    let readers = [Peer::ClientGoProtobuf.reads(), Peer::KubeRs.reads()];
    tasks.extend(readers.map(|reader| task(reader, "sync,reads", 1_000)));
    for driver in [Watchkeeper, ClientGo] {
        tasks.extend(
            QUEUES
                .map(|(producers, consumers)| task(Configuration::queue(driver, producers, consumers), "", 1_000_000)),
        );
    }
    tasks
}

/// The main rows, against one mode of each peer.
pub(crate) fn quick() -> Vec<Task> {
    let task = |configuration, phases, count| Task { configuration, phases, count };
    let mut tasks =
        vec![task(ours(QUICK_PODS), "sync,events", 30_000), task(ours_decode(QUICK_DECODE_PODS), "events", 20_000)];
    for peer in Peer::ALL {
        let events = match peer {
            Peer::ClientGoProtobuf => 10_000,
            Peer::ClientGoJson => 1_000,
            Peer::KubeRs => 5_000,
        };
        tasks.push(task(peer.keys(QUICK_PODS)[0], "sync,events", events));
        tasks.push(task(peer.decode(QUICK_DECODE_PODS)[0], "events", events));
    }
    tasks
}
