//! The list of a cycle.
//!
//! Which version a list asks for decides what it costs the server. The first one asks for version 0, any state that the
//! server has in memory. Later ones ask for a state that is not older than the last one seen: also from memory, if there is
//! no limit. Only when a *list* was told that its version is unknown does the next one ask for none, which makes the
//! server read everything from etcd: were a watch's 410 enough for that, all clients of a restarted server would do so
//! at once.

use crate::metrics::ListOutcome;
use crate::pager::{PagedList, Pager};
use crate::reflector::trace::Trace;
use crate::reflector::{Failure, Reflector, Replacement};
use crate::source::{ListOptions, ListPart};
use crate::{Error, ErrorKind, ResourceVersion, defaults};

impl Reflector {
    /// Lists, and replaces what the store holds.
    pub(super) async fn list(&mut self) -> Result<(), Failure> {
        let mut trace = Trace::start("a list");
        let result = self.list_traced(&mut trace).await;
        trace.log_if_longer_than(defaults::SLOW_LIST);
        result
    }

    async fn list_traced(&mut self, trace: &mut Trace) -> Result<(), Failure> {
        self.list_begins();
        let mut version = self.relist_version();
        let list = match self.read_list(&version).await {
            // The one list that is repeated at once; one that asked for no version already is not.
            Err(error) if (error.is_expired() || error.is_too_large_version()) && !version.is_unset() => {
                tracing::debug!(%error, "listing at no version");
                self.is_blind_because(super::reason(&error), Some(&error));
                self.status.error(&error);
                self.list_ended((&error).into());
                self.version_unavailable = true;
                self.list_begins();
                version = self.relist_version();
                self.read_list(&version).await
            }
            list => list,
        };
        trace.step("objects listed");
        let list = list.inspect_err(|error| self.list_ended(error.into()))?;
        // Only of a list at version 0 do pages say something: at no version they come from etcd in any case.
        if version == ResourceVersion::any() && list.paginated {
            self.paginated_result = true;
        }
        self.replace(list)?;
        trace.step("store replaced");
        Ok(())
    }

    async fn read_list(&self, version: &ResourceVersion) -> Result<PagedList, Error> {
        let pager = Pager::over(self.source.clone()).idle_timeout(self.settings.list_idle_timeout);
        let pager = match self.settings.page_size {
            Some(size) => pager.page_size(size),
            None if self.paginated_result => pager,
            // A limit would send the server to etcd.
            None if version.is_exact() => pager.page_size(0),
            None => pager,
        };
        let options = ListOptions { resource_version: version.clone(), ..ListOptions::default() };
        let observe = |part: &ListPart| {
            self.status.contact();
            if let ListPart::Item(_) | ListPart::Bad(_) = part {
                self.status.listed_object();
            }
        };
        pager.list_observed(options, observe).await
    }

    /// A list was read to its end: the store gets the new state, and the watch goes on from there.
    pub(super) fn replace(&mut self, list: PagedList) -> Result<(), Failure> {
        let objects = (list.items.len() + list.bad.len()) as u64;
        let replaced = self.write_list(list);
        if replaced.is_ok() {
            self.has_listed(objects);
        }
        self.list_ended(replaced.as_ref().map_or_else(ListOutcome::from, |()| ListOutcome::Success));
        replaced
    }

    fn write_list(&mut self, list: PagedList) -> Result<(), Failure> {
        let unreadable = list.bad.iter().filter(|object| object.key.is_none()).count();
        let version = list.resource_version;
        if version.as_str().len() > defaults::LONGEST_VERSION {
            return Err(Error::new(ErrorKind::Malformed, "the version of the list is too long to be asked for").into());
        }
        self.mark_all_stale(&list.items, &list.bad);
        let replacement = Replacement {
            items: list.items,
            resource_version: version.clone(),
            unusable: list.bad.into_iter().filter_map(|object| object.key).collect(),
            complete: unreadable == 0,
        };
        self.store.replace(replacement)?;
        if unreadable > 0 {
            return Err(Failure::unreadable(format_args!(
                "the list has {unreadable} objects without a readable key, so it deletes nothing"
            )));
        }
        // Not before: the list after one that deletes nothing is to do what that one was to do.
        self.version_unavailable = false;
        self.version = version;
        self.status.version(&self.version);
        self.status.synced();
        Ok(())
    }

    /// The version that the next list asks for.
    fn relist_version(&self) -> ResourceVersion {
        if self.version_unavailable {
            ResourceVersion::unset()
        } else if self.version.is_unset() {
            ResourceVersion::any()
        } else {
            self.version.clone()
        }
    }
}
