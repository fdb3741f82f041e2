//! What things are called.

/// Namespaces, and what runs in them.
pub(super) const TEAMS: [(&str, &[&str]); 14] = [
    ("shop", &["web", "cart", "checkout", "catalog", "orders", "payments", "recommendations", "wishlist", "inventory"]),
    ("bank", &["ledger", "accounts", "transfers", "fraud", "statements", "cards", "loans"]),
    ("search", &["query", "indexer", "suggest", "ranker", "crawler", "spelling"]),
    ("media", &["uploads", "transcoder", "thumbnails", "streams", "subtitles", "purger"]),
    ("identity", &["login", "tokens", "sessions", "directory", "invitations"]),
    ("mail", &["smtp", "inbox", "spam-filter", "templates", "bounces"]),
    ("analytics", &["collector", "funnels", "reports", "dashboards", "exports"]),
    ("maps", &["tiles", "geocoder", "routing", "traffic", "places"]),
    ("chat", &["gateway", "presence", "rooms", "push", "history"]),
    ("ads", &["bidder", "auction", "creatives", "budgets", "attribution"]),
    ("travel", &["flights", "hotels", "bookings", "seats", "loyalty"]),
    ("weather", &["forecast", "stations", "radar", "alerts"]),
    ("logistics", &["tracking", "labels", "carriers", "returns", "warehouse"]),
    ("billing", &["invoices", "subscriptions", "taxes", "dunning", "usage"]),
];

/// Where a team has more than one namespace.
pub(super) const PLACES: [&str; 6] = ["staging", "eu", "us", "asia", "canary", "dev"];

/// What else an application consists of.
pub(super) const PARTS: [&str; 8] = ["api", "worker", "cache", "consumer", "scheduler", "sync", "batch", "admin"];

/// What runs in `kube-system`.
pub(super) const SYSTEM: [(&str, u32); 3] = [("coredns", 2), ("metrics-server", 1), ("konnectivity-agent", 2)];

/// Zones of the nodes.
pub(super) const ZONES: [&str; 3] = ["north-a", "north-b", "north-c"];

/// What is done again and again.
pub(super) const CHORES: [&str; 6] = ["backup", "report", "cleanup", "reindex", "rotate-keys", "import"];

/// The namespace of this number: one of each team first, then their further ones.
pub(super) fn namespace(number: usize) -> String {
    let (team, _) = TEAMS[number % TEAMS.len()];
    match number / TEAMS.len() {
        0 => team.to_owned(),
        round => {
            let place = PLACES[(round - 1) % PLACES.len()];
            match (round - 1) / PLACES.len() {
                0 => format!("{team}-{place}"),
                again => format!("{team}-{place}-{}", again + 1),
            }
        }
    }
}

/// The application of this number in a namespace of this number.
pub(super) fn app(namespace: usize, number: usize) -> String {
    let (_, apps) = TEAMS[namespace % TEAMS.len()];
    let app = apps[number % apps.len()];
    match number / apps.len() {
        0 => app.to_owned(),
        round => {
            let part = PARTS[(round - 1) % PARTS.len()];
            match (round - 1) / PARTS.len() {
                0 => format!("{app}-{part}"),
                again => format!("{app}-{part}-{}", again + 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_have_the_same_name() {
        let namespaces: HashSet<String> = (0..500).map(namespace).collect();
        assert_eq!(namespaces.len(), 500);
        let apps: HashSet<String> = (0..2000).map(|number| app(0, number)).collect();
        assert_eq!(apps.len(), 2000);
    }
}
