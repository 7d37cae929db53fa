//! Several handlers behind one door.

use std::sync::Arc;

use super::error::HttpError;
use super::handler::{Handled, Handler, Request};
use super::response::Response;
use super::traffic::Traffic;

/// Hands requests to handlers by their path. All count at the same place.
pub struct Mounts {
    /// Paths, each as a whole, and who answers there.
    mounted: Vec<(&'static str, Arc<dyn Handler>)>,
    /// Who answers everywhere else.
    rest: Arc<dyn Handler>,
}

impl Mounts {
    /// Requests go to `rest`, but for those that are mounted.
    pub fn new(rest: Arc<dyn Handler>) -> Self {
        Self {
            mounted: Vec::new(),
            rest,
        }
    }

    /// Has `handler` answer at exactly these paths.
    #[must_use]
    pub fn at(mut self, paths: &[&'static str], handler: &Arc<dyn Handler>) -> Self {
        let added = paths.iter().map(|path| (*path, Arc::clone(handler)));
        self.mounted.extend(added);
        self
    }

    fn of(&self, path: &str) -> &dyn Handler {
        let found = self.mounted.iter().find(|(mounted, _)| *mounted == path);
        found.map_or(&*self.rest, |(_, handler)| &**handler)
    }
}

impl Handler for Mounts {
    fn handle(&self, request: Request) -> Handled {
        self.of(request.path()).handle(request)
    }

    fn is_read(&self, path: &str) -> bool {
        self.of(path).is_read(path)
    }

    fn is_always_answered(&self, path: &str) -> bool {
        self.of(path).is_always_answered(path)
    }

    fn upload_bytes_max(&self, path: &str) -> Option<usize> {
        self.of(path).upload_bytes_max(path)
    }

    fn refuse(&self, path: &str, error: HttpError) -> Response {
        self.of(path).refuse(path, error)
    }

    fn traffic(&self) -> Arc<Traffic> {
        self.rest.traffic()
    }
}
