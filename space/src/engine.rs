//! The parameters of our engine that HPL.dat does not contain; `engine-params.toml` is their serialised form.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{NodeSettings, Share, Weights};

/// Engine parameters of one run. Missing fields have their default.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineParams {
    /// Threads of each rank, at least 1.
    pub threads: usize,
    /// Ask the system for huge pages under the matrix (`madvise`).
    pub huge_pages: bool,
    /// The kernels under the factorization.
    pub kernels: KernelChoice,
    /// The kernels of each rank where nodes differ, P·Q of them in the order of ranks; none for those above everywhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rank_kernels: Vec<KernelChoice>,
    /// Part of the local trailing columns in the right section, whose row exchange hides behind the update of
    /// the left one and the other way round; at least 0, which is no split, and below 1. Acts for P > 1.
    pub split: Share,
    /// Where the matrix is and who updates it.
    #[serde(skip_serializing_if = "DeviceChoice::is_none")]
    pub device: DeviceChoice,
    /// Blocks of threads of the device that factor a panel; 0 for the threads of the rank, none for the usual number. Acts for
    /// P = 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fact_blocks: Option<usize>,
    /// Relative speeds of process rows and columns.
    #[serde(skip_serializing_if = "Weights::is_empty")]
    pub weights: Weights,
    /// Dimensions that only another engine has, by name; our engine refuses a run that has any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
    /// Settings of the nodes under which the run works; whoever starts it has made them.
    #[serde(skip_serializing_if = "NodeSettings::is_as_found")]
    pub settings: NodeSettings,
}

impl Default for EngineParams {
    fn default() -> Self {
        Self {
            threads: 1,
            huge_pages: true,
            kernels: KernelChoice::Builtin,
            rank_kernels: Vec::new(),
            split: Share::ZERO,
            device: DeviceChoice::None,
            fact_blocks: None,
            weights: Weights::default(),
            extra: BTreeMap::new(),
            settings: NodeSettings::default(),
        }
    }
}

impl EngineParams {
    /// Blocks of threads of the device that factor a panel; 0 for the threads of the rank.
    pub fn fact_blocks(&self) -> usize {
        // On AMD's GPUs blocks that wait for each other are untested.
        self.fact_blocks.unwrap_or(if self.device == DeviceChoice::Cuda { 32 } else { 0 })
    }

    /// Takes the blocks that are `asked` for, if any are. With a device the number is written down, so that results name it.
    pub fn settle_fact_blocks(&mut self, asked: Option<usize>) {
        self.fact_blocks = asked.or(self.fact_blocks);
        if !self.device.is_none() {
            self.fact_blocks = Some(self.fact_blocks());
        }
    }
}

/// What an `engine-params.toml` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFile {
    /// The parameters, of which those that the file leaves out have their default.
    pub params: EngineParams,
    /// Whether the file leaves out the threads of a rank, so that the cores are to be divided among the ranks.
    pub divide_cores: bool,
}

impl EngineFile {
    /// Reads the text of an `engine-params.toml`.
    ///
    /// # Errors
    /// No TOML, or a key that is unknown.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let divide_cores = !toml::from_str::<toml::Table>(text)?.contains_key("threads");
        Ok(Self { params: toml::from_str(text)?, divide_cores })
    }
}

/// Of no file: all parameters have their default, and the cores are divided among the ranks.
impl Default for EngineFile {
    fn default() -> Self {
        Self { params: EngineParams::default(), divide_cores: true }
    }
}

/// The device that holds the matrix and updates it: `none`, `reference`, `cuda` or `hip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// No device: the threads of the host.
    #[default]
    None,
    /// The reference device, which is simulated on the host to test the order of operations.
    Reference,
    /// An NVIDIA GPU, by the libraries of CUDA.
    Cuda,
    /// An AMD GPU, by the libraries of ROCm.
    Hip,
}

/// What a user asks for as device: `auto`, or one of [`DeviceChoice`]. It is resolved before a run, never stored with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceRequest {
    /// A GPU if there is one, else none.
    Auto,
    /// This device.
    Only(DeviceChoice),
}

impl FromStr for DeviceRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let all = [DeviceChoice::None, DeviceChoice::Reference, DeviceChoice::Cuda, DeviceChoice::Hip];
        let named = all.into_iter().find(|device| device.name() == text);
        named.map(Self::Only).ok_or_else(|| format!("{text} is not a device; use auto, none, reference, cuda or hip"))
    }
}

impl DeviceChoice {
    /// Its name, that in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Reference => "reference",
            Self::Cuda => "cuda",
            Self::Hip => "hip",
        }
    }

    /// Whether it is the host.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Whether the matrix is in the memory of a GPU.
    pub fn is_gpu(&self) -> bool {
        matches!(self, Self::Cuda | Self::Hip)
    }
}

/// Which dense kernels a run uses: `auto`, `builtin`, `builtin-avx2`, `builtin-portable`, or the path of a BLAS library.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum KernelChoice {
    /// Measure the available kernels and use the fastest; resolved before a run, never stored with a result.
    Auto,
    /// The built-in pure Rust kernels.
    Builtin,
    /// The built-in kernels limited to an instruction set.
    Limited(InstructionSet),
    /// A BLAS shared library, loaded at run time.
    Blas(PathBuf),
}

/// Instruction sets to which the built-in kernels can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstructionSet {
    /// x86-64 with AVX2 and FMA.
    Avx2,
    /// What every processor of the architecture has.
    Portable,
}

impl From<String> for KernelChoice {
    fn from(text: String) -> Self {
        match text.as_str() {
            "auto" => Self::Auto,
            "builtin" => Self::Builtin,
            "builtin-avx2" => Self::Limited(InstructionSet::Avx2),
            "builtin-portable" => Self::Limited(InstructionSet::Portable),
            _ => Self::Blas(PathBuf::from(text)),
        }
    }
}

impl From<KernelChoice> for String {
    fn from(choice: KernelChoice) -> Self {
        choice.to_string()
    }
}

impl std::fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Builtin => f.write_str("builtin"),
            Self::Limited(InstructionSet::Avx2) => f.write_str("builtin-avx2"),
            Self::Limited(InstructionSet::Portable) => f.write_str("builtin-portable"),
            Self::Blas(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_whether_it_has_threads() {
        let read = |text: &str| {
            EngineFile::parse(text)
                .map(|EngineFile { params, divide_cores }| (params.threads, params.huge_pages, divide_cores))
        };
        assert_eq!(read("huge_pages = false\n").unwrap(), (1, false, true));
        assert_eq!(read("threads = 1\n").unwrap(), (1, true, false));
        assert!(read("thread = 1\n").unwrap_err().to_string().contains("thread"));
    }
}
