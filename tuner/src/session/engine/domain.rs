//! What is searched with an engine.

use space::domain::{
    DomainError, DomainSpec, ForeignDomain, HplDomain, Limits, MAX_POINTS, SettingsDomain, WeightedDomain,
    default_candidate,
};
use space::{Candidate, Candidates, SettingLevels};

use super::Engine;

impl Engine {
    /// What is searched with it, and the configuration that its users start from.
    ///
    /// # Errors
    /// [`DomainError`] when no candidate is left.
    pub fn domain(&self, spec: &DomainSpec) -> Result<(Box<dyn Candidates>, Candidate), DomainError> {
        self.domain_within(spec, &Limits::default())
    }

    /// Whether some candidate of [`Engine::domain`] fits ranks, threads and memory; how many there are, limits may change.
    ///
    /// # Errors
    /// [`DomainError`] when no candidate is left.
    pub fn check_fits(&self, spec: &DomainSpec) -> Result<(), DomainError> {
        match self.domain(spec) {
            Ok(_) | Err(DomainError::TooMany { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// [`Engine::domain`] with the values that `limits` allow, which are of [`Engine::limits`].
    ///
    /// # Errors
    /// [`DomainError`] when no candidate is left.
    pub fn domain_within(
        &self,
        spec: &DomainSpec,
        limits: &Limits,
    ) -> Result<(Box<dyn Candidates>, Candidate), DomainError> {
        self.domain_with_at_most(spec, limits, MAX_POINTS)
    }

    /// [`Engine::domain_within`] at each of these settings of the nodes, where there are some; the usual configuration is at those that the
    /// nodes were found with.
    ///
    /// # Errors
    /// [`DomainError`] when no candidate is left.
    pub fn domain_at(
        &self,
        spec: &DomainSpec,
        limits: &Limits,
        settings: &SettingLevels,
    ) -> Result<(Box<dyn Candidates>, Candidate), DomainError> {
        if settings.is_empty() {
            return self.domain_within(spec, limits);
        }
        let most = SettingsDomain::most_inner(settings, limits)?;
        let (domain, mut usual) = self.domain_with_at_most(spec, limits, most)?;
        usual.engine.settings = settings.as_found();
        Ok((Box::new(SettingsDomain::new(domain, settings, limits)?), usual))
    }

    fn domain_with_at_most(
        &self,
        spec: &DomainSpec,
        limits: &Limits,
        most: usize,
    ) -> Result<(Box<dyn Candidates>, Candidate), DomainError> {
        match self {
            Self::Ours | Self::Launched(_) => {
                let spec = &self.on_nodes(spec);
                let domain: Box<dyn Candidates> = if spec.unequal.differs() {
                    Box::new(WeightedDomain::with_at_most(spec, limits, most)?)
                } else {
                    Box::new(HplDomain::with_at_most(spec, limits, most)?)
                };
                Ok((domain, default_candidate(spec)))
            }
            Self::Foreign(foreign) => {
                let domain = ForeignDomain::with_at_most(spec, &foreign.profile().obeyed(), limits, most)?;
                let usual = domain.usual();
                Ok((Box::new(domain), usual))
            }
        }
    }
}
