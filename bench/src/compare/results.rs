//! All runs of all configurations, and comparisons between them.

use std::collections::BTreeMap;

use crate::configuration::Configuration;
use crate::figures::{Figures, Measured};

#[derive(Debug, Default)]
pub(crate) struct Results {
    runs: BTreeMap<Configuration, Vec<Result<Figures, String>>>,
}

impl Results {
    pub(crate) fn add(&mut self, configuration: Configuration, run: Result<Figures, String>) {
        self.runs.entry(configuration).or_default().push(run);
    }

    pub(crate) fn configurations(&self) -> impl Iterator<Item = &Configuration> {
        self.runs.keys()
    }

    fn good(&self, configuration: &Configuration) -> impl Iterator<Item = &Figures> {
        self.runs.get(configuration).into_iter().flatten().filter_map(|run| run.as_ref().ok())
    }

    pub(crate) fn version(&self, configuration: &Configuration) -> Option<&str> {
        self.good(configuration).map(|figures| figures.version.as_str()).next()
    }

    /// A figure of all runs that went well.
    pub(crate) fn measured(&self, configuration: &Configuration, figure: &str) -> Option<Measured> {
        self.computed(configuration, |figures| figures.get(figure))
    }

    /// The same of what is computed of several figures of a run.
    pub(crate) fn computed(
        &self,
        configuration: &Configuration,
        compute: impl Fn(&Figures) -> Option<f64>,
    ) -> Option<Measured> {
        Measured::of(self.good(configuration).filter_map(compute))
    }

    /// The configuration that is best at something.
    pub(crate) fn best(
        &self,
        configurations: &[Configuration],
        figure: &str,
        better: Better,
    ) -> Option<(Configuration, Measured)> {
        let all = configurations.iter().filter_map(|one| Some((*one, self.measured(one, figure)?)));
        all.min_by(|(_, a), (_, b)| match better {
            Better::Less => a.median.total_cmp(&b.median),
            Better::More => b.median.total_cmp(&a.median),
        })
    }

    /// What went wrong: the configuration, how often, of how many times, and the last error.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&Configuration, usize, usize, &str)> {
        self.runs.iter().filter_map(|(configuration, runs)| {
            let errors: Vec<&String> = runs.iter().filter_map(|run| run.as_ref().err()).collect();
            errors.last().map(|last| (configuration, errors.len(), runs.len(), last.as_str()))
        })
    }
}

/// Which of two figures is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Less,
    More,
}

impl Better {
    /// How many times better ours is: more than 1 is in our favour.
    pub(crate) fn ratio(self, ours: f64, theirs: f64) -> f64 {
        match self {
            Self::Less => theirs / ours,
            Self::More => ours / theirs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Driver;

    fn results(values: &[(Configuration, f64)]) -> Results {
        let mut results = Results::default();
        for (configuration, value) in values {
            let mut figures = Figures::default();
            figures.insert("sync.wall_s", *value);
            results.add(*configuration, Ok(figures));
        }
        results
    }

    const LIST: Configuration = Configuration::informer(Driver::KubeRs, "list", "keys", 1, 100);
    const STREAM: Configuration = Configuration::informer(Driver::KubeRs, "stream", "keys", 1, 100);

    #[test]
    fn the_better_mode_is_the_one_with_the_better_median() {
        let results = results(&[(LIST, 5.0), (STREAM, 4.0), (LIST, 6.0), (STREAM, 9.0), (LIST, 5.5), (STREAM, 8.0)]);
        let best = |better| results.best(&[LIST, STREAM], "sync.wall_s", better).unwrap().0;
        assert_eq!(best(Better::Less), LIST);
        assert_eq!(best(Better::More), STREAM);
        assert!(results.best(&[LIST], "sync.cpu_s", Better::Less).is_none());
    }

    #[test]
    fn runs_that_failed_do_not_count_and_are_reported() {
        let mut results = results(&[(LIST, 5.0)]);
        results.add(LIST, Err("it broke".to_owned()));
        assert_eq!(results.measured(&LIST, "sync.wall_s").unwrap().most, 5.0);
        assert_eq!(results.failures().collect::<Vec<_>>(), [(&LIST, 1, 2, "it broke")]);
    }

    #[test]
    fn a_ratio_above_one_is_in_our_favour() {
        assert_eq!(Better::Less.ratio(2.0, 6.0), 3.0);
        assert_eq!(Better::More.ratio(6.0, 2.0), 3.0);
    }
}
