"""The border between pictures and tensors: uint8 arrays on one side, batches of float tensors on the other."""

import numpy as np
import torch
from torch import Tensor

from vton import labels


def picture_to_tensor(picture: np.ndarray, device: torch.device | str = "cpu") -> Tensor:
    """(H,W,3) uint8 -> (1,3,H,W) float32 in [-1, 1]."""
    values = np.ascontiguousarray(picture).astype(np.float32).transpose(2, 0, 1) / 127.5 - 1
    return torch.from_numpy(values)[None].to(device)


def mask_to_tensor(mask: np.ndarray, device: torch.device | str = "cpu") -> Tensor:
    """(H,W) bool, or uint8 with 255 = inside -> (1,1,H,W) float32, 0 or 1."""
    inside = mask if mask.dtype == bool else mask > 127
    return torch.from_numpy(inside.astype(np.float32))[None, None].to(device)


def labels_to_tensor(label_map: np.ndarray, n: int, device: torch.device | str = "cpu") -> Tensor:
    """(H,W) integers 0 to n - 1 -> (1,n,H,W) float32, one-hot."""
    return torch.from_numpy(labels.one_hot(label_map, n))[None].to(device)


def tensor_to_picture(tensor: Tensor) -> np.ndarray:
    """(3,H,W) or (1,3,H,W) in [-1, 1] -> (H,W,3) uint8."""
    tensor = tensor[0] if tensor.ndim == 4 else tensor
    return ((tensor.detach().float().clamp(-1, 1) + 1) * 127.5).round().byte().permute(1, 2, 0).cpu().numpy()


def tensor_to_mask(tensor: Tensor) -> np.ndarray:
    """(1,1,H,W) -> (H,W) uint8, 255 above 0.5 and 0 elsewhere."""
    return ((tensor[0, 0] > 0.5).to(torch.uint8) * 255).cpu().numpy()


def tensor_to_share(tensor: Tensor) -> np.ndarray:
    """(1,1,H,W) in [0, 1] -> (H,W) uint8, 0 to 255."""
    return (tensor[0, 0].float().clamp(0, 1) * 255).round().to(torch.uint8).cpu().numpy()
