//! The engine's parameters, which are not in HPL.dat: from flags and a file.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::backend::device::FoundGpus;
use crate::program::Ranks;
use clap::Args;
use space::weights_file::{WeightsFile, WeightsFileError};
use space::{Candidate, DeviceChoice, DeviceRequest, EngineFile, EngineParams, HplParams, KernelChoice, Share};

/// Flags of the engine. A flag overrides the file.
#[derive(Args)]
pub(super) struct EngineArgs {
    /// Engine parameters as `hpl-tune` writes them (TOML): threads, huge_pages, kernels, split, device, weights; without
    /// threads, the
    /// cores are divided among the ranks
    #[arg(long, value_name = "FILE")]
    engine_params: Option<PathBuf>,
    /// Threads of each rank [default: the cores divided among the ranks]
    #[arg(long, value_name = "T")]
    threads: Option<NonZeroUsize>,
    /// Dense kernels: `auto` (the fastest installed), `builtin`, or the path of a BLAS library [default: builtin]
    #[arg(long, value_name = "KERNELS", value_parser = |text: &str| Ok::<_, String>(KernelChoice::from(text.to_owned())))]
    blas: Option<KernelChoice>,
    /// Split update for P > 1: fraction of the local columns in the right section, at least 0 and below 1 [default: 0]
    #[arg(long, value_name = "F")]
    split: Option<Share>,
    /// The device that holds the matrix: none, cuda, hip (which has never run on hardware), auto (a GPU if there is one), or reference,
    /// which is simulated on the host to test the engine [default: none]
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["survey", "report_bindings"])]
    device: Option<DeviceRequest>,
    /// Blocks of threads of the device that factor a panel where P = 1; 0: the threads of the host factor it [default: 32 with
    /// cuda]
    #[arg(long, value_name = "B")]
    fact_blocks: Option<usize>,
    /// Weights of process rows and columns, as `hpl-tune weights --out` writes them (TOML)
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
}

/// Errors of reading the engine parameters.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineError {
    #[error("cannot read {name}: {source}")]
    Unreadable { name: String, source: io::Error },
    #[error("{name}: {source}")]
    Malformed { name: String, source: toml::de::Error },
    #[error("{name}: {source}")]
    Weights { name: String, source: WeightsFileError },
}

/// The engine's parameters for any run of an HPL.dat.
pub(super) struct EngineSettings {
    params: EngineParams,
    /// Whether the cores are divided among the ranks: neither flag nor file gives the threads.
    divide_cores: bool,
}

impl EngineArgs {
    /// Threads given by the flag.
    pub(super) fn threads(&self) -> Option<usize> {
        self.threads.map(NonZeroUsize::get)
    }

    /// The parameters: defaults, overridden by the file, overridden by flags.
    pub(super) fn read(&self) -> Result<EngineSettings, EngineError> {
        let file = self.engine_params.as_deref().map(read_file).transpose()?;
        let EngineFile { mut params, divide_cores } = file.unwrap_or_default();
        params.threads = self.threads.map_or(params.threads, NonZeroUsize::get);
        params.split = self.split.unwrap_or(params.split);
        params.device = self.device.map_or(params.device, FoundGpus::choose);
        params.settle_fact_blocks(self.fact_blocks);
        if let Some(kernels) = &self.blas {
            params.kernels = kernels.clone();
        }
        if let Some(path) = &self.weights {
            params.weights = read_weights(path)?.weights();
        }
        Ok(EngineSettings { params, divide_cores: divide_cores && self.threads.is_none() })
    }
}

impl EngineSettings {
    /// Those of a file.
    pub(super) fn of_file(path: &Path) -> Result<Self, EngineError> {
        let EngineFile { params, divide_cores } = read_file(path)?;
        Ok(Self { params, divide_cores })
    }

    /// The kernels of all runs.
    pub(super) fn kernels(&self) -> &KernelChoice {
        &self.params.kernels
    }

    /// The device of all runs.
    pub(super) fn device(&self) -> DeviceChoice {
        self.params.device
    }

    /// The candidate of one run, on the cores of `ranks`.
    pub(super) fn candidate(&self, hpl: &HplParams, ranks: &Ranks) -> Candidate {
        let threads = if self.divide_cores { ranks.threads_each(hpl.ranks()) } else { self.params.threads };
        Candidate { hpl: *hpl, engine: EngineParams { threads, ..self.params.clone() } }
    }
}

fn read_file(path: &Path) -> Result<EngineFile, EngineError> {
    let name = || path.display().to_string();
    EngineFile::parse(&read_text(path)?).map_err(|source| EngineError::Malformed { name: name(), source })
}

fn read_weights(path: &Path) -> Result<WeightsFile, EngineError> {
    let name = || path.display().to_string();
    WeightsFile::parse(&read_text(path)?).map_err(|source| EngineError::Weights { name: name(), source })
}

fn read_text(path: &Path) -> Result<String, EngineError> {
    std::fs::read_to_string(path).map_err(|source| EngineError::Unreadable { name: path.display().to_string(), source })
}
