//! `--reference`: windows of a run and of another one in turn.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use space::dat::{DatError, HplDat};
use space::{Candidate, KernelChoice};

use super::dat_text::dat_text;
use super::engine::{EngineError, EngineSettings};
use crate::program::Ranks;

/// Flags of a reference.
#[derive(Debug, Clone, Args)]
pub(super) struct PairArgs {
    /// Compare the run of HPL.dat with that of this HPL.dat, by windows of both in turn
    ///
    /// Each names one run, of the same N. Each window is measured before and after its counterpart, on the same processes and in the
    /// same memory, so that a change of the machine's speed affects both. The result is the ratio of the predicted rates of the whole runs, as
    /// `hpl-tune run --reference` writes it.
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["windows", "survey", "report_bindings", "progress", "phases", "timeline"])]
    reference: Option<PathBuf>,
    /// Engine parameters of --reference; those of this run when absent
    #[arg(long, value_name = "FILE", requires = "reference")]
    reference_params: Option<PathBuf>,
}

/// Errors of a reference.
#[derive(Debug, thiserror::Error)]
pub(super) enum PairError {
    #[error("cannot read --reference {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("--reference {}: no HPL.dat is so long", .0.display())]
    TooLong(PathBuf),
    #[error("--reference {}: {source}", path.display())]
    Dat { path: PathBuf, source: DatError },
    #[error("{name} describes {runs} runs; --reference compares one with one")]
    Runs { name: String, runs: usize },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(
        "--reference-params: kernels {reference} differ from {candidate}, and one process has one library; compare them by whole runs"
    )]
    Kernels { reference: KernelChoice, candidate: KernelChoice },
}

impl PairArgs {
    /// The reference of the only run in `candidates`, whose engine parameters are `engine`; `None` without the flag.
    pub(super) fn read(
        &self,
        candidates: &[Candidate],
        engine: &EngineSettings,
        ranks: &Ranks,
    ) -> Result<Option<Candidate>, PairError> {
        let Some(path) = &self.reference else { return Ok(None) };
        one("HPL.dat", candidates.len())?;
        let own = self.reference_params.as_deref().map(EngineSettings::of_file).transpose()?;
        let own = own.as_ref().unwrap_or(engine);
        if own.kernels() != engine.kernels() {
            let [reference, candidate] = [own, engine].map(|engine| engine.kernels().clone());
            return Err(PairError::Kernels { reference, candidate });
        }
        let runs = read(path)?.runs();
        one(&path.display().to_string(), runs.len())?;
        Ok(Some(own.candidate(&runs[0], ranks)))
    }
}

fn read(path: &Path) -> Result<HplDat, PairError> {
    let named = || path.to_owned();
    let text = dat_text(path).map_err(|source| PairError::Unreadable { path: named(), source })?;
    HplDat::parse(&text.ok_or_else(|| PairError::TooLong(named()))?)
        .map_err(|source| PairError::Dat { path: named(), source })
}

fn one(name: &str, runs: usize) -> Result<(), PairError> {
    if runs == 1 { Ok(()) } else { Err(PairError::Runs { name: name.to_owned(), runs }) }
}
