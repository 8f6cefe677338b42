"""Every private name of torch that the package uses, one file a subject; a test keeps them here.

Each name was looked up in the wheels of torch 2.6.0, 2.9.1, 2.13.0 and 2.15.0, and is in all four:

===================================================================== ==========================
name                                                                  file
===================================================================== ==========================
`torch._C._profiler._RecordFunctionFast`, `_C._jit_try_infer_type`    `fast_scopes.py`
`torch.autograd.profiler._is_profiler_enabled`,                       `profiler_flag.py`
`_set_is_profiler_enabled`
`UntypedStorage._new_using_fd_cpu`, `_new_using_filename_cpu`,        `mapped_storages.py`
`_new_shared_fd_cpu`, `_new_shared_filename_cpu`, `_share_fd_cpu_`,
`_share_filename_cpu_`, `_cdata`
`torch.autograd._get_sequence_nr`, `_C._get_privateuse1_backend_name` `process_state.py`
`torch.distributed.distributed_c10d._get_all_pg_configs`
`_C.DisableTorchFunctionSubclass`; `_overloadpacket`, `_schema` and   `operators.py`
`_qualified_op_name` of an operator; `torch._ops`,
`torch.utils._python_dispatch`
`_torchdynamo_orig_callable`, `_compiled_call_impl`,                  `compiled_code.py`
`torch._dynamo`, `torch._inductor.config`
`torch._inductor.codecache.PyCodeCache`: `linemaps`, `modules`,       `inductor_code.py`
`load_by_key_path`; `torch._inductor.output_code.CompiledFxGraph`:
`cache_key`, `inductor_post_grad_graph_str` (not looked up in 2.6)
`torch._dynamo.callback.callback_handler.install_callbacks`,          `compiler_records.py`
`torch._dynamo.utils.get_compilation_metrics`, `graph_break_reasons`
(not looked up in 2.6)
===================================================================== ==========================

The C++ recorder (`capture/native/source/`) uses of torch: `at::addGlobalCallback`,
`removeCallback`, `hasCallbacks`, `getStepCallbacksUnlessEmpty`, `RecordFunction`,
`RecordFunctionCallback`, `ObserverContext`, `c10::GetCPUAllocator`, `SetCPUAllocator`,
`GetDefaultCPUAllocator`, `DataPtr::compare_exchange_deleter`, `ThreadLocalDebugInfo`,
`torch::ParamCommsDebugInfo` and `torch::profiler::impl::ProfilerStateBase`.
"""
