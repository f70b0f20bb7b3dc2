import numpy as np
import pytest
from skimage.color import deltaE_ciede2000
from skimage.metrics import structural_similarity as of_scikit_image

from lab.tryon.measures import bootstrap, kernel_distance
from vton.metrics import (
    ciede2000,
    colour_difference,
    confusion,
    coverage,
    edge_distances,
    group_iou,
    iou,
    mask_iou,
    sharpness,
    structural_similarity,
)


def test_ssim_equals_scikit_image():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (60, 50, 3)).astype(np.uint8)
    b = np.clip(a + rng.normal(0, 20, a.shape), 0, 255).astype(np.uint8)
    wanted = of_scikit_image(
        a, b, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
    )
    assert structural_similarity(a, b, border=False) == pytest.approx(wanted, abs=2e-4)
    assert structural_similarity(a, a, border=False) == pytest.approx(1)
    with pytest.raises(ValueError, match="one size"):
        structural_similarity(a, b[1:])


def test_ciede2000_equals_scikit_image_and_a_published_pair():
    rng = np.random.default_rng(1)
    a, b = (rng.uniform((0, -90, -90), (100, 90, 90), (200, 3)) for _ in range(2))
    np.testing.assert_allclose(ciede2000(a, b), deltaE_ciede2000(a, b), atol=1e-4)
    # Sharma et al. 2005, Table 1, pair 1
    assert ciede2000(np.array([50.0, 2.6772, -79.7751]), np.array([50.0, 0.0, -82.7485])) == pytest.approx(
        2.0425, abs=1e-4
    )


def test_colour_difference_looks_only_inside_the_mask():
    a, b = np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4, 3), np.uint8)
    b[:, 2:] = 255
    mask = np.zeros((4, 4), bool)
    mask[:, :2] = True
    assert colour_difference(a, b, mask) == pytest.approx(0, abs=1e-6)
    assert colour_difference(a, b, ~mask) == pytest.approx(100, abs=0.1)
    assert np.isnan(colour_difference(a, b, np.zeros((4, 4), bool)))


def test_overlap_by_hand():
    truth, answer = np.array([[0, 0, 1, 1]]), np.array([[0, 1, 1, 2]])
    matrix = confusion(truth, answer, None, 3)
    assert matrix.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]
    np.testing.assert_allclose(iou(matrix), [1 / 2, 1 / 3, 0])
    assert confusion(truth, answer, np.array([[True, False, True, True]]), 3).sum() == 3
    # Labels 1 and 2 in one group: the confusion between them is no error. Label 0 is outside: ignored in the truth.
    assert group_iou(matrix, {"both": (1, 2)}) == {"both": 1.0}
    assert group_iou(matrix, {"zero": (0,), "one": (1,)}) == {
        "zero": pytest.approx(1 / 2),
        "one": pytest.approx(1 / 3),
    }


def test_masks_by_hand():
    a, b = np.array([1, 1, 0, 0], bool), np.array([0, 1, 1, 0], bool)
    assert mask_iou(a, b) == pytest.approx(1 / 3)
    assert coverage(a, b) == pytest.approx(1 / 2)
    assert mask_iou(~a & a, ~a & a) == 1 and coverage(a, a & ~a) == 1


def test_sharpness_is_the_share_of_the_gradient_inside_the_mask():
    rng = np.random.default_rng(0)
    photograph = rng.integers(40, 216, (40, 40, 3)).astype(np.uint8)
    mask = np.zeros((40, 40), bool)
    mask[8:32, 8:32] = True
    assert sharpness(photograph, photograph, mask) == pytest.approx(1)
    weak = (128 + (photograph.astype(float) - 128) / 2).round().astype(np.uint8)
    assert sharpness(weak, photograph, mask) == pytest.approx(0.5, abs=0.01)
    outside = photograph.copy()
    outside[~mask] = 0  # an edge at the mask's border is not the garment's
    assert sharpness(outside, photograph, mask) == pytest.approx(1)
    assert np.isnan(sharpness(photograph, photograph, np.zeros((40, 40), bool)))
    assert np.isnan(sharpness(photograph, np.zeros_like(photograph), mask))


def test_bootstrap_interval_of_a_mean():
    values = np.random.default_rng(3).normal(2, 1, 400)
    middle, low, high = bootstrap(values)
    assert middle == pytest.approx(values.mean()) and low < middle < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.2)  # the normal interval of so many values
    assert bootstrap([1.0, float("nan"), 1.0]) == (1.0, 1.0, 1.0)
    assert np.isnan(bootstrap([])).all()


def test_kernel_distance_equals_torchmetrics_and_is_unbiased():
    import torch
    from torchmetrics.image.kid import poly_mmd

    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, (12, 6)), rng.normal(0.4, 1, (12, 6))
    value, error = kernel_distance(x, y)
    assert value == pytest.approx(float(poly_mmd(torch.from_numpy(x), torch.from_numpy(y))), rel=1e-6)
    assert error > 0
    same = [kernel_distance(rng.normal(0, 1, (12, 6)), rng.normal(0, 1, (9, 6))) for _ in range(60)]
    values, errors = np.array(same).T
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(60)  # of one distribution it is 0 on average
    assert 0.5 < errors.mean() / values.std() < 2.5  # and the error is of the spread's size
    with pytest.raises(ValueError, match="three pictures"):
        kernel_distance(x[:2], y)


def test_edges_are_measured_in_pixels():
    keypoints = np.zeros((25, 3))
    for joint, place in {2: (30, 20), 3: (30, 50), 4: (30, 80), 5: (70, 20), 6: (70, 50), 7: (70, 80)}.items():
        keypoints[joint] = (*place, 1)
    truth = np.zeros((100, 100), bool)
    truth[15:60, 28:73] = True
    answer = np.zeros_like(truth)
    answer[20:67, 28:73] = True  # the neck 5 lower, the hem 7, and with it the sleeves
    assert edge_distances(truth, truth, keypoints) == {"hem": 0, "neckline": 0, "sleeve_ends": 0}
    assert edge_distances(truth, answer, keypoints) == pytest.approx({"hem": 7, "neckline": 5, "sleeve_ends": 7})
    assert edge_distances(truth, np.zeros_like(truth), keypoints) == {}
