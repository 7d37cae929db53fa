//! What lists of tokens tell of a token and its project.

/// What lists of tokens tell of a token; `None` where none of them does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenProject {
    /// Its name, for contracts that tell none.
    pub name: Option<String>,
    /// Its symbol, likewise.
    pub symbol: Option<String>,
    /// Its decimals, likewise.
    pub decimals: Option<u8>,
    /// A few sentences.
    pub description: Option<String>,
    /// URL.
    pub website: Option<String>,
    /// Address of the project's mail.
    pub email: Option<String>,
    /// URL.
    pub blog: Option<String>,
    /// URL.
    pub reddit: Option<String>,
    /// URL.
    pub twitter: Option<String>,
    /// URL.
    pub github: Option<String>,
    /// URL.
    pub telegram: Option<String>,
    /// URL.
    pub discord: Option<String>,
    /// URL.
    pub whitepaper: Option<String>,
    /// URL of a picture.
    pub logo_uri: Option<String>,
}

impl TokenProject {
    /// All texts in their stored order.
    #[must_use]
    pub const fn texts(&self) -> [&Option<String>; 13] {
        [
            &self.name,
            &self.symbol,
            &self.description,
            &self.website,
            &self.email,
            &self.blog,
            &self.reddit,
            &self.twitter,
            &self.github,
            &self.telegram,
            &self.discord,
            &self.whitepaper,
            &self.logo_uri,
        ]
    }

    /// The same, to be filled in.
    pub const fn texts_mut(&mut self) -> [&mut Option<String>; 13] {
        [
            &mut self.name,
            &mut self.symbol,
            &mut self.description,
            &mut self.website,
            &mut self.email,
            &mut self.blog,
            &mut self.reddit,
            &mut self.twitter,
            &mut self.github,
            &mut self.telegram,
            &mut self.discord,
            &mut self.whitepaper,
            &mut self.logo_uri,
        ]
    }

    /// Takes over what `later` tells; what it does not tell stays.
    pub fn update(&mut self, mut later: Self) {
        self.decimals = later.decimals.or(self.decimals);
        for (text, later) in self.texts_mut().into_iter().zip(later.texts_mut()) {
            if later.is_some() {
                *text = later.take();
            }
        }
    }
}
